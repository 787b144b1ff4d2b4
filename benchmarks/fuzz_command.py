"""Does the command end in a report or in one sentence, whatever was done to the files it is given?

Each case gives a damaged trace to `analyze` (all outputs), `inspect` or `digest`, a damaged digest
to `analyze`, or a damaged report.json to `render`. Allowed are: exit code 0 with every output there
and readable; 3, or 2 for a mistaken use, with one sentence and a hint on stderr. It may take
SECONDS.

    python benchmarks/fuzz_command.py --mutations 10000
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import fuzz

from analyzer import api, cli
from analyzer.digest import digest, packed
from analyzer.report import document
from analyzer.report.document import dumps

OUTPUTS = ("report.html", "report.json", "report.md")
COMMANDS = ("analyze", "analyze", "analyze", "inspect", "digest", "analyze digest", "render")


class Sound:
    """What is damaged, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "run").mkdir()
        for rank in (0, 1):
            (folder / f"rank{rank}.json").write_bytes(fuzz.clean(rank))
        self.digests = [packed(digest(folder / f"rank{r}.json", api.Settings())) for r in (0, 1)]
        request = api.Request("fuzz", "2025-10-09T08:00:00Z")
        self.report = dumps(
            api.analyze([str(folder / f"rank{r}.json") for r in (0, 1)], request, api.Settings())
        )


def case(number: int, sound: Sound) -> tuple[str, list[str]]:
    """What is done in case `number`, and the command line; the damaged file is written."""
    chance, run = random.Random(number), sound.folder / "run"
    for path in run.iterdir():
        path.unlink()
    command, out = COMMANDS[number % len(COMMANDS)], str(sound.folder / "out")
    damage = chance.choice(fuzz.DAMAGES)
    if command == "render":
        (run / "saved.json").write_bytes(damage(chance, sound.report, fuzz.clean(0)))
        return f"render, {damage.__name__}", ["render", str(run / "saved.json"), "-o", out, "-f"]
    if command == "analyze digest":
        (run / "rank1.digest").write_bytes(damage(chance, sound.digests[1], sound.digests[0]))
        (run / "rank0.digest").write_bytes(sound.digests[0])
        return f"{command}, {damage.__name__}", ["analyze", str(run), "-o", out, "-f"]
    name, data, what = fuzz.damaged(number)
    (run / name).write_bytes(data)
    if chance.random() < 0.5:
        (run / "rank0.json").write_bytes(fuzz.clean(0))
    more = [] if command == "inspect" else ["-o", out, "-f"]
    return f"{command}, {what}", ["--no-progress", command, str(run), *more]


def failure(number: int, sound: Sound) -> tuple[str, str]:
    """What was done in case `number` with how it ended; what is wrong with that, "" for nothing."""
    what, arguments = case(number, sound)
    folder = sound.folder / "out"
    for path in folder.iterdir() if folder.exists() else ():
        path.unlink()
    out, err = io.StringIO(), io.StringIO()
    try:
        with fuzz.limited(fuzz.SECONDS), redirect_stdout(out), redirect_stderr(err):
            code = cli.run(arguments)
    except BaseException as error:
        return what, f"{type(error).__name__}: {error}"
    said = err.getvalue().splitlines()
    errors = [line for line in said if line.startswith("error: ")]
    wrong = ""
    if code not in (0, 2, 3) or "Traceback" in err.getvalue() + out.getvalue():
        wrong = f"exit code {code}"
    elif code == 0:
        wrong = "" if not errors else "an error, and exit code 0"
        wrong = wrong or (unreadable(folder) if "-o" in arguments else "")
    elif len(errors) != 1 or out.getvalue():
        wrong = f"exit code {code}, but not one sentence"
    return f"{what}: exit {code}", f"{wrong}\n{err.getvalue()}" if wrong else ""


def unreadable(folder: Path) -> str:
    """What is wrong with the outputs; "" if they can be read."""
    digests = sorted(folder.glob("*.digest"))
    if digests:
        return ""
    missing = [name for name in OUTPUTS if not (folder / name).is_file()]
    if missing:
        return f"no {', '.join(missing)}"
    document.read(folder / "report.json")
    json.loads((folder / "report.json").read_text(), parse_constant=fuzz.refuse)
    return (
        "" if (folder / "report.html").read_text().rstrip().endswith("</html>") else "half a page"
    )


def failures(numbers: range) -> Iterator[tuple[int, str, str]]:
    """Number, what was done with how it ended, and what is wrong with that, of each case."""
    with tempfile.TemporaryDirectory() as name:
        sound = Sound(Path(name))
        for number in numbers:
            yield (number, *failure(number, sound))


def main() -> None:
    """Runs the cases and says by exit status whether all of them ended as they must."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--mutations", type=int, default=10_000)
    options.add_argument("--first", type=int, default=0, help="number of the first case")
    given = options.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (fuzz.LARGEST_BYTES, fuzz.LARGEST_BYTES))
    counted: Counter[str] = Counter()
    failed = 0
    for number, what, wrong in failures(range(given.first, given.first + given.mutations)):
        command, _, end = what.partition(",")[0], "", what.rpartition(": ")[2]
        counted[f"{command}: {end}"] += 1
        if wrong:
            failed += 1
            print(f"case {number} ({what}):\n{wrong}")
    for what, times in sorted(counted.items()):
        print(f"{times:6,}  {what}")
    print(f"{given.mutations:,} cases, {failed} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
