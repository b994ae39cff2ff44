import signal
import threading

import pytest

from annotrace.training.interrupt import graceful_interrupt


def test_the_first_ctrl_c_is_a_request_and_the_second_raises():
    handler = signal.getsignal(signal.SIGINT)
    with graceful_interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_leave_signals_alone():
    handlers = []

    def run():
        with graceful_interrupt():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_ctrl_c_raises_at_once_where_that_changes_nothing():
    with graceful_interrupt() as interrupt:
        with pytest.raises(KeyboardInterrupt), interrupt.at_once():
            signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt), interrupt.at_once():
            raise AssertionError("a request that is there already comes first")
