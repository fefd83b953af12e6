"""What pip printed becomes one sentence with its cause. The outputs are pip's own, shortened."""

from __future__ import annotations

import pytest

from installer.problems import not_found, pip_news, pip_problem

MISMATCH = """\
Collecting jinja2==3.1.6
  Downloading jinja2-3.1.6-py3-none-any.whl (134 kB)
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the
package versions, please update the hashes.
    jinja2==3.1.6 from https://files.example/jinja2-3.1.6-py3-none-any.whl (from -r x (line 3)):
        Expected sha256 85ece4451f492d0c13c5dd7c13a64681a86afae63a5f347908daf103ce6d2f67
             Got        0000000000000000000000000000000000000000000000000000000000000000
"""
OFFLINE = """\
WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('<HTTPS>:
Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/x/
ERROR: Could not find a version that satisfies the requirement x==1 (from versions: none)
ERROR: No matching distribution found for x==1
"""
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
UNKNOWN = """\
ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu (from versions: )
ERROR: No matching distribution found for torch==2.13.0+cpu
"""
CONSTRAINED = """\
ERROR: Cannot install torch==2.13.0+cpu because these package versions have conflicts.
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/
"""
REFUSED = "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: 'x'\n"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (MISMATCH, "jinja2==3.1.6"),
        (MISMATCH, "SHA-256 differs"),
        (OFFLINE, "network"),
        (FULL, "disk is full"),
        (UNKNOWN, "No source of pip has torch==2.13.0+cpu"),
        (CONSTRAINED, "No source of pip has torch==2.13.0+cpu"),
        (REFUSED, "refused to write"),
        ("ERROR: something else\n", "something else"),
        ("", "no output"),
    ],
)
def test_each_failure_of_pip_is_told_by_its_cause(output: str, said: str) -> None:
    sentence = pip_problem(output, "packages").sentence
    assert said in sentence
    assert "\n" not in sentence


def test_a_missing_network_is_not_mistaken_for_a_missing_package() -> None:
    assert "No source" not in pip_problem(OFFLINE, "packages").sentence


def test_only_a_fruitless_search_asks_the_spare_index() -> None:
    assert not_found(UNKNOWN)
    assert not_found(CONSTRAINED)
    assert not not_found(MISMATCH)
    assert not not_found(FULL)


@pytest.mark.parametrize(
    ("line", "news"),
    [
        ("Collecting numpy==2.4.6 (from -r run.txt (line 9))", "collecting numpy==2.4.6"),
        ("  Downloading torch-2.13.0.whl (190.1 MB)", "downloading torch-2.13.0.whl (190.1 MB)"),
        ("Processing ./some/folder/torch.whl", "processing torch.whl"),
        ("Installing collected packages: a, b", "laying out the files"),
        ("WARNING: Location is ignored", None),
    ],
)
def test_pips_lines_become_short_news(line: str, news: str | None) -> None:
    assert pip_news(line) == news
