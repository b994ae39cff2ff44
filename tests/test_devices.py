import pytest
import torch

from annotrace.devices import pick_device
from annotrace.errors import InputError

CPU = torch.device("cpu")


def test_devices():
    assert pick_device("cpu") == CPU
    assert pick_device(CPU) == CPU
    assert pick_device("auto").type in ("cpu", "cuda")
    with pytest.raises(InputError, match="'auto', 'cpu', 'cuda' or 'mps', but got 'gpu'"):
        pick_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="'cuda' is not available here"):
            pick_device("cuda")
