import speed_tables


def row(library, method, part="S", **measured):
    found = {"cpu_seconds": 1.0, "megabytes": 10.0} | measured
    return {"library": library, "method": method, "part": part} | found


def lines(*rows):
    return speed_tables.peers_table(rows).splitlines()[2:]


def test_other_libraries_are_multiples_of_ours_on_the_same_crowd():
    rows = [
        row("annotrace", "dawid-skene", cpu_seconds=0.5),
        row("annotrace", "dawid-skene", "L", cpu_seconds=4.0, megabytes=2000.0),
        row("crowd-kit", "dawid-skene", cpu_seconds=6.0, megabytes=17.4),
        row("crowd-kit", "dawid-skene", "L", cpu_seconds=5.0),
    ]
    assert lines(*rows) == [
        "| Dawid-Skene | annotrace | 0.5 s, 10 MB | 4 s, 2,000 MB |",
        "| Dawid-Skene | crowd-kit | 12 x, 17 MB | 1.2 x, 10 MB |",
    ]


def test_contenders_that_were_stopped_say_why():
    stops = {
        "MemoryError: Unable to allocate 74.5 GiB for an array": "asks for 74.5 GiB",
        "MemoryError: Unable to allocate 1.2 GiB for an array": "more than 6 GB",
        "MemoryError: Unable to allocate 763. MiB for an array": "more than 6 GB",
        "MemoryError": "more than 6 GB",
    }
    limits = {"gigabytes": 6.0, "seconds": 240.0}
    for message, said in stops.items():
        stopped = row("x", "majority", stopped="memory", message=message, limits=limits)
        assert lines(stopped) == [f"| majority vote | x | {said} |"]
    late = row("x", "majority", stopped="time", message="", limits=limits)
    assert lines(late) == ["| majority vote | x | more than 240 s |"]
    absent = row("x", "majority", stopped="install", message="no network", limits=limits)
    assert lines(row("annotrace", "majority"), absent)[1:] == [
        "| majority vote | x | not installed |"
    ]


def test_curves_are_not_in_the_table():
    assert lines(row("annotrace", "dawid-skene", "labels")) == []
