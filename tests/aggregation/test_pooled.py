import numpy as np
from references import fit_quietly, random_table

from annotrace.aggregation import DawidSkene, PooledDawidSkene
from annotrace.labels import LabelTable


def test_pool_helps_annotators_with_few_labels():
    rng = np.random.default_rng(5)
    item, annotator, label, truth = random_table(rng, 800, 160, 10, labels_each=4, skill=0.6)
    table = LabelTable.from_codes(item, annotator, label)
    plain, pooled = DawidSkene().fit(table), fit_quietly(PooledDawidSkene(), table)
    gain = (pooled.predict() == truth).mean() - (plain.predict() == truth).mean()
    assert gain > 0.05


def test_the_prior_is_strong_where_annotators_are_alike():
    rng = np.random.default_rng(6)
    item, annotator, label, truth = random_table(rng, 600, 20, 3, labels_each=6, skill=0.7)
    alike = PooledDawidSkene().fit(LabelTable.from_codes(item, annotator, label))
    perfect = annotator < 10
    unlike = PooledDawidSkene().fit(
        LabelTable.from_codes(item, annotator, np.where(perfect, truth[item], label))
    )
    assert alike.pool_.shape == (3, 3)
    assert alike.pool_.sum(1).min() > 2 * unlike.pool_.sum(1).max()


def test_few_labels_leave_an_annotator_near_the_pool():
    rng = np.random.default_rng(7)
    item, annotator, label, truth = random_table(rng, 400, 10, 3, labels_each=5, skill=0.8)
    once = np.flatnonzero(annotator == 9)
    kept = np.setdiff1d(np.arange(len(item)), once[1:])
    label[once[0]] = (truth[item[once[0]]] + 1) % 3
    model = PooledDawidSkene().fit(LabelTable.from_codes(item[kept], annotator[kept], label[kept]))
    others = model.confusion_[:9].mean(0)
    assert np.abs(model.confusion_[9] - others).max() < 0.3
