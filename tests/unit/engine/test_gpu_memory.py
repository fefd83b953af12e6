"""What a device refuses is told with numbers, and nothing stays on the accounts."""

from __future__ import annotations

import pytest
import torch

from engine.cache.cuda import CudaDevice
from engine.cache.formats import KvFormat
from engine.cache.kv import KvArena
from engine.errors import DeviceLost, InvariantBroken, MemoryRefused
from engine.gpu.cards.guarded import device_trouble
from engine.memory.allocation import allocating
from engine.memory.ledger import Ledger
from engine.models.spec import PageGroupSpec

CPU = torch.device("cpu")
GROUP = PageGroupSpec(window=None, layer_count=1, kv_head_count=1, head_dim=8)


def test_what_another_program_took_is_told_with_both_numbers() -> None:
    ledger = Ledger({"gpu0": 10 << 30})
    lease = ledger.reserve("KV pages", {"gpu0": 3 << 30})
    words = r"KV pages need 3\.0 GiB of GPU memory"
    with pytest.raises(MemoryRefused, match=words) as told, allocating(lease, CPU):
        raise torch.OutOfMemoryError("CUDA out of memory.")
    assert told.value.numbers == {"pool": "gpu0", "needed_bytes": 3 << 30, "free_bytes": 0}
    ledger.close()


def test_what_was_allocated_is_committed() -> None:
    ledger = Ledger({"gpu0": 100})
    lease = ledger.reserve("KV pages", {"gpu0": 60})
    with allocating(lease, CPU):
        assert not lease.is_committed
    assert lease.is_committed
    lease.close()
    ledger.close()


def test_another_fault_is_itself_and_refunds_too() -> None:
    ledger = Ledger({"gpu0": 100})
    lease = ledger.reserve("KV pages", {"gpu0": 60})
    with pytest.raises(ValueError, match="else"), allocating(lease, CPU):
        raise ValueError("something else")
    ledger.close()


def test_a_driver_that_fails_while_a_page_is_copied_is_a_lost_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger({"gpu0": 1 << 20})
    with KvArena((GROUP,), (2,), KvFormat.BF16, ledger, "gpu0") as kv:
        device = CudaDevice(kv, None, CPU)

        def fails(*_: object, **__: object) -> torch.Tensor:
            raise RuntimeError("CUDA error: an illegal memory access\nCompile with ...")

        monkeypatch.setattr(torch.Tensor, "copy_", fails)
        out = memoryview(bytearray(device.page_bytes(0)))
        with pytest.raises(DeviceLost, match=r"illegal memory access$"):
            device.read_page(0, 0, out)
        monkeypatch.undo()
        device.close()
    ledger.close()


@pytest.mark.parametrize(
    ("raised", "told", "words"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), MemoryRefused, "another program"),
        (RuntimeError("CUDA error: an illegal memory access\nMore."), DeviceLost, "illegal"),
        (RuntimeError("Triton Error [CUDA]: device lost"), DeviceLost, "device lost"),
        (RuntimeError("shapes do not fit"), RuntimeError, "shapes"),
        (InvariantBroken("ours"), InvariantBroken, "ours"),
    ],
)
def test_a_device_s_trouble_is_told_from_a_fault_of_our_own(
    raised: Exception, told: type[Exception], words: str
) -> None:
    with pytest.raises(told, match=words) as found, device_trouble():
        raise raised
    assert type(found.value) is told
