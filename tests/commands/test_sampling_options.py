"""What rollout and resample refuse before anything is loaded."""

import pytest

from rlvr_cli.commands.sampling import LARGEST_COUNT, check_positive
from rlvr_cli.errors import UsageError


def test_counts_are_positive_and_samples_bounded():
    check_positive(samples=LARGEST_COUNT, batch_size=1)
    with pytest.raises(UsageError, match="--batch-size is 0, expected at least 1"):
        check_positive(batch_size=0)
    with pytest.raises(UsageError, match=f"--samples is {LARGEST_COUNT + 1}, expected at most {LARGEST_COUNT}"):
        check_positive(samples=LARGEST_COUNT + 1)
