import socket
from threading import Event
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from annotrace.connect.listener import listening
from annotrace.errors import InputError


def post(url):
    with build_opener(ProxyHandler({})).open(
        Request(url, b"{}", method="POST"), timeout=5
    ) as answer:
        return answer.status


def test_a_call_wakes():
    wake = Event()
    with listening("127.0.0.1:0", wake) as url:
        assert post(url) == 204
        assert wake.is_set()
        wake.clear()
        with pytest.raises(HTTPError) as raised:
            post(url.replace("annotrace", "other"))
        raised.value.close()
        assert raised.value.code == 404
        assert not wake.is_set()


@pytest.mark.parametrize("address", ["9090", ":9090", "localhost:http", "localhost:70000"])
def test_addresses_that_are_refused(address):
    with pytest.raises(InputError, match="HOST:PORT"), listening(address, Event()):
        pass


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match=f"--listen {address}"), listening(address, Event()):
            pass
