"""Counts of n-grams against counting by hand, and their memory."""

import tracemalloc

import numpy as np

from annotrace.data.ngrams import BLOCK, MAX_CHARACTERS, N_CODES, count_ngrams


def count(*texts):
    return count_ngrams(np.array([[text] for text in texts], dtype=object))


def test_words_and_pairs_of_words_are_counted_with_punctuation():
    words = count("good good film!")[:, :BLOCK]
    # good (2), film, !, "good good", "good film", "film !".
    assert sorted(words.data.tolist()) == [1, 1, 1, 1, 1, 2]


def test_characters_are_counted_within_words():
    characters = count("ab")[:, BLOCK : 2 * BLOCK]
    # Of " ab ": two characters (3), three (2) and four (1).
    assert characters.sum() == 6


def test_the_same_text_has_the_same_codes_alone_and_among_others():
    alone, among = count("a fine film"), count("dull", "a fine film")
    assert (alone != among[[1]]).nnz == 0
    assert (count("A FINE film") != alone).nnz == 0


def test_pairs_tell_what_both_texts_share():
    same, differ = count_ngrams(np.array([["a dog", "a dog"], ["a dog", "rain"]], dtype=object))
    overlap = slice(2 * BLOCK, N_CODES)
    assert same.shape == (N_CODES,)
    full, none = (
        row.toarray().ravel()[overlap] for row in (same.reshape(1, -1), differ.reshape(1, -1))
    )
    assert full.sum() > none.sum()


def test_no_texts_and_texts_without_words():
    assert count_ngrams(np.empty((0, 1), dtype=object)).shape == (0, N_CODES)
    assert count("", "   ").nnz == 0


def test_the_end_of_very_long_texts_is_ignored():
    long = "a " * (MAX_CHARACTERS // 2)
    assert (count(long) != count(f"{long} end")).nnz == 0


def test_no_dense_array_of_ngrams_is_made():
    rng = np.random.default_rng(0)
    texts = [" ".join(map(str, rng.integers(0, 10**6, 20))) for _ in range(2_000)]
    tracemalloc.start()
    counts = count(*texts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    dense = len(texts) * N_CODES  # Bytes, at one per n-gram.
    assert peak < 40 * counts.nnz + 2**26 < dense / 10
