import numpy as np
import pytest
from made_up_judges import draw_panel, known_codes

import annotrace as at
from annotrace.judges.models import runs_by_model


def test_runs_that_agree_count_as_one():
    table, truth = draw_panel([0.8] * 3, 400, shared=1.0, names=["gpt/a", "gpt/b", "gpt/c"])
    other, _ = draw_panel([0.8], 400, names=["qwen"])
    wide = np.hstack([table.to_wide(), other.to_wide()])
    both = at.LabelTable.from_wide(wide, annotators=["gpt/a", "gpt/b", "gpt/c", "qwen"])
    gpt, qwen = runs_by_model(both, known_codes(truth, 400), ["gpt"] * 3 + ["qwen"])
    assert gpt.runs == ("gpt/a", "gpt/b", "gpt/c")
    assert gpt.consistency.value == 1
    assert gpt.effective_votes == pytest.approx(1)
    expected = np.mean([(wide[:, k] == wide[:, 3]).mean() for k in range(3)])
    assert gpt.others.value == qwen.others.value == pytest.approx(expected)
    assert not qwen.consistency.is_known
    assert np.isnan(qwen.effective_votes)


def test_independent_runs_count_for_themselves():
    table, truth = draw_panel([0.8] * 3, 2000)
    (model,) = runs_by_model(table, known_codes(truth, 2000), ["m"] * 3)
    assert model.effective_votes == pytest.approx(3, abs=0.25)
    assert model.consistency.value == pytest.approx(0.8**2 + 0.2**2, abs=0.03)
    assert not model.others.is_known
