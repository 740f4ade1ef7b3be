"""`./run mutants [NAME…]`: put each bug of the museum into a copy of our code, and see that its test notices."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import click

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import KILLED, ROOT, Fate, Mutant, hunt, run_tests

_AT_ONCE = 2
_SOUND_WITHIN = 900.0


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="Only say what there is.")
def main(names: tuple[str, ...], *, only_list: bool) -> None:
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if unknown := set(names) - {mutant.name for mutant in chosen}:
        raise click.UsageError(f"there is no mutant {', '.join(sorted(unknown))}; see --list")
    if only_list:
        for mutant in chosen:
            click.echo(f"{mutant.name:5} {mutant.bug}\n      {mutant.killer}")
        return
    _check_sound(chosen)
    with ThreadPoolExecutor(_AT_ONCE) as hunters:
        fates = list(hunters.map(_hunt, chosen))
    killed = sum(fate in KILLED for fate in fates)
    click.echo(f"{killed} of {len(chosen)} mutants killed")
    sys.exit(killed != len(chosen))


def _check_sound(chosen: list[Mutant]) -> None:
    """A test that fails without the bug says nothing about it."""
    killers = sorted({mutant.killer for mutant in chosen})
    ended = run_tests(killers, source=ROOT / "src", limit=_SOUND_WITHIN)
    if ended.returncode:
        sys.exit(f"{ended.stdout}\nthe tests do not pass on the code as it is")


def _hunt(mutant: Mutant) -> Fate:
    fate = hunt(mutant)
    click.echo(f"{mutant.name:5} {fate.value:8} {mutant.bug}  [{mutant.killer}]")
    return fate


if __name__ == "__main__":
    main(prog_name="mutants")
