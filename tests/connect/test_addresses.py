"""Where a file may be read from: the labelling tool alone."""

import base64

import pytest

from annotrace.connect.addresses import is_data, locate, origin_of, read_data
from annotrace.errors import InputError, LimitError

SERVER = "https://tool.example.com"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/data/upload/1/ab-cat.png", "/data/upload/1/ab-cat.png"),
        (" /data/upload/1/a%20b.png\n", "/data/upload/1/a%20b.png"),
        ("/data/upload/1/a b ä.png", "/data/upload/1/a%20b%20%C3%A4.png"),
        ("/data/local-files/?d=cats/a b.png", "/data/local-files/?d=cats/a%20b.png"),
        ("/data/a.png\r\nX-Header: 1", "/data/a.pngX-Header:%201"),
        ("data/a.png", "/data/a.png"),
        (f"{SERVER}/a.png#part", "/a.png"),
        (f"{SERVER}:443/a.png", "/a.png"),
        ("HTTPS://TOOL.example.com/a.png", "/a.png"),
        ("https://me:secret@tool.example.com/a.png", "/a.png"),
    ],
)
def test_addresses_on_the_server(address, expected):
    assert locate(address, SERVER) == SERVER + expected


def test_an_address_is_relative_to_the_host_as_in_a_browser():
    assert locate("/data/a.png", f"{SERVER}/labels") == f"{SERVER}/data/a.png"
    assert locate("data/a.png", f"{SERVER}/labels") == f"{SERVER}/labels/data/a.png"


@pytest.mark.parametrize(
    "address",
    [
        "http://tool.example.com/a.png",
        "https://tool.example.com:8443/a.png",
        "https://tool.example.com.evil.org/a.png",
        "https://tool.example.com@evil.org/a.png",
        "//evil.org/a.png",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost:8080/a.png",
    ],
)
def test_other_servers_are_refused(address):
    with pytest.raises(InputError, match=rf"files are read only from {SERVER}\. Download the"):
        locate(address, SERVER)


@pytest.mark.parametrize("address", ["s3://b/a.png", "gs://b/a.png", "azure-blob://b/a.png"])
def test_cloud_storage_is_refused(address):
    with pytest.raises(InputError, match=r"begin with [\w-]+: are not read\. Download the images"):
        locate(address, SERVER)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "C:\\photos\\a.png", "ftp://tool/a"])
def test_other_schemes_are_refused(address):
    with pytest.raises(InputError, match="are not read"):
        locate(address, SERVER)


@pytest.mark.parametrize("address", ["http://[", "http://tool:port/", "/\ud800.png"])
def test_what_is_no_address(address):
    with pytest.raises(InputError, match="It is not an address"):
        locate(address, SERVER)


def test_data_uris():
    text = base64.b64encode(b"image").decode()
    for begin in ("data:image/png;base64,", "DATA:image/svg+xml;charset=utf-8;base64,"):
        assert is_data(begin)
        assert read_data(begin + text, 5) == b"image"
    assert not is_data("/data:image")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("data:text/html;base64,aGk=", "begins with data:image/"),
        ("data:image/png,aGk=", "begins with data:image/"),
        ("data:image/png;base64,a$Gk=", "not valid base64"),
        ("data:image/png;base64,aGk", "not valid base64"),
        ("data:image/png;base64,aGkä", "not valid base64"),
    ],
)
def test_data_uris_that_are_refused(address, said):
    with pytest.raises(InputError, match=said):
        read_data(address, 100)


def test_data_uris_are_limited_in_size():
    text = base64.b64encode(bytes(90)).decode()
    assert read_data(f"data:image/png;base64,{text}", 90) == bytes(90)
    with pytest.raises(LimitError, match="more than 89 bytes"):
        read_data(f"data:image/png;base64,{text}", 89)


def test_an_origin_has_no_secrets():
    assert origin_of("https://me:pw@host:1/secret?token=1") == "https://host:1"
    assert origin_of("/login") == "a path"
    assert origin_of("http://[") == "another address"
