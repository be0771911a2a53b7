"""Endless YAML files and mistakes in a user's files are refused within seconds and with little memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from klr_bench.config import locations as config_files
from klr_bench.yaml_file import DEEPEST, LARGE, SMALL, read_yaml
from tests.attack.promise import refused, rejected

TENS = "[" + ", ".join(["*a{0}"] * 10) + "]"
NESTED = "".join(f"a{n}: &a{n} {TENS.format(n - 1)}\n" for n in range(1, 12))
MERGED = "".join(f"a{n}: &a{n} {{<<: {TENS.format(n - 1)}}}\n" for n in range(1, 12))
COUNT, DEPTH = f"at most {SMALL:,} values", f"at most {DEEPEST} levels of lists and mappings"
REASON = "expected a YAML file, but it cannot be read"
BOMBS: dict[str, tuple[bytes, str]] = {
    "aliases of lists": (f"a0: &a0 [1]\n{NESTED}".encode(), COUNT),
    "aliases of merged keys": (f"a0: &a0 {{x: 1}}\n{MERGED}".encode(), COUNT),
    "an alias of itself": (b"a: &a [*a]", "inside itself"),
    "an alias of nothing": (b"a: *a", REASON),
    "a hundred thousand brackets": (b"a: " + b"[" * 10**5, DEPTH),
    "deep indentation": ("".join(f"{' ' * n}a:\n" for n in range(500)).encode(), DEPTH),
    "a value of megabytes": (b"a: " + b"x" * 200 * SMALL, f"at most {200 * SMALL:,} bytes"),
    "many keys": ("".join(f"{n}: 1\n" for n in range(SMALL)).encode(), COUNT),
    "several documents": (b"a: 1\n---\nb: 2\n", REASON),
    "a key twice": (b"a: 1\na: 2\n", "comes twice"),
    "latin-1": (b"a: \xe9", REASON),
    "an escape character": (b"a: \x1b[31m", REASON),
    "hexadecimal digits without end": (b"a: 0x" + b"f" * 5000, REASON),
    "an open quote": (b'a: "b', REASON),
    **{
        f"the tag {tag.decode()}": (b"a: " + tag, "expected values without a tag")
        for tag in (b"!!python/object/apply:os.system ['touch ran']", b"!own x", b"! x", b"!!str 5")
    },
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused(tmp_path: Path, bomb: str) -> None:
    content, expected = BOMBS[bomb]
    path = tmp_path / "bomb.yaml"
    path.write_bytes(content)
    rejected(lambda: read_yaml(path), f"{path}: ", expected)


def test_a_bomb_needs_little_memory_and_time(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_bytes(BOMBS["aliases of lists"][0])
    (tmp_path / "records.csv").write_text("key\n")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (800 << 20, 800 << 20))\n"
        "from klr_bench.cli import main; status = main(sys.argv[1:])\n"
        "from klr_bench.runner.fit import peak_memory_mb; print(int(peak_memory_mb())); sys.exit(status)"
    )
    command = [sys.executable, "-c", code, "report", f"experiment={tmp_path.name}", f"results_dir={tmp_path.parent}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert f"at most {LARGE:,} values" in done.stderr
    assert int(done.stdout.split()[-1]) < 500


@pytest.mark.parametrize("group", sorted({*config_files.GROUPS, *config_files.KINDS}))
def test_a_mistake_in_a_file_of_the_user_is_found_before_anything_else_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], group: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "configs" / group / "mine.yaml"
    path.parent.mkdir(parents=True)
    header = config_files.package_header(Path(group) / "mine.yaml") or "#"
    for mistake in ("a key twice", "several documents", "an open quote", "latin-1"):
        path.write_bytes(header.encode() + b"\n" + BOMBS[mistake][0])
        refused(capsys, ["run", "--dry-run"], f"{group}/mine.yaml: ", "expected ")
    path.unlink()
    path.mkdir()
    refused(capsys, ["data", "list"], f"{group}/mine.yaml: expected a regular file, got a folder")
