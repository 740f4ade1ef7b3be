"""Schema: whether it is the one that this code needs, and closed to other roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rowlock.doctor.check import HealthCheck, several, why, worst
from rowlock.model.checkup import Finding, Level
from rowlock.store.doctor.blueprint import Difference, differences, index_statement, may_be_emptied
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.roles import ALL, ROLES, Role
from rowlock.store.schema import newest

_GROUP = "schema"
_MOST_STATEMENTS = 3


def judge_schema(facts: Facts) -> Iterator[Finding]:
    """All checks of the schema."""
    yield _version(facts)
    yield _things(facts)
    yield _indexes(facts)
    yield _definers(facts)
    yield _logged(facts)
    yield _public(facts)
    yield _roles(facts)


def _version(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "migrations")
    version, compatible = facts.version
    ours = newest()
    figure = f"{version}, this Rowlock is for {ours}"
    if version < ours:
        return check.ill(
            "red", figure, "migrations are missing: workers wait for them", do="rowlock migrate", value=version
        )
    if compatible > ours:
        says = f"the schema needs code for version {compatible} or later"
        return check.ill("red", figure, says, do="upgrade Rowlock here", value=version)
    if version > ours:
        says = "the schema is newer than this Rowlock, which still works with it"
        return check.ill("amber", figure, says, do="upgrade Rowlock here", value=version)
    return check.green(figure, "all migrations are there", value=version)


def _things(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "objects")
    if facts.described is None:
        return check.unknown(why(facts, "schema"))
    if facts.version[0] != newest():
        return check.ill("amber", "?", "unknown: the schema is of another version", do="bring both to the same version")
    found = differences(facts.schema, facts.described)
    if not found:
        return check.green(
            f"{len(facts.described)} as made", "tables, indexes, rules and functions are as the migrations made them"
        )
    wrong = [f"{one.what} is {one.how}" for one in found]
    lacking = [one for one in found if one.how != "not ours"]
    return check.ill(
        "red" if lacking else "amber",
        several(wrong),
        "statements fail, or crawl, without it" if lacking else "each claim and settle pays for it, or runs it",
        do=_remedy(facts.schema, lacking) if lacking else "drop it, if nobody needs it",
        value=len(found),
    )


def _remedy(schema: str, lacking: Sequence[Difference]) -> str:
    """The statements to run, if only indexes are missing."""
    said = [index_statement(schema, one) for one in lacking]
    if all(said) and len(said) <= _MOST_STATEMENTS:
        return "; ".join(filter(None, said))
    return "recreate it from `rowlock migrate --sql` on an empty schema"


def _indexes(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "indexes")
    if facts.described is None:
        return check.unknown(why(facts, "schema"))
    indexes = [thing for thing in facts.described if thing.kind == "index"]
    broken = [thing.name for thing in indexes if not thing.sound]
    if not broken:
        return check.green(f"{len(indexes)} valid", "PostgreSQL uses and keeps all of them")
    return check.ill(
        "red",
        f"{several(broken)} invalid",
        "an index that was not built to its end is not used",
        do="; ".join(f'reindex index concurrently "{facts.schema}".{name}' for name in broken[:3]),
        value=len(broken),
    )


def _definers(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "definer functions")
    if facts.described is None:
        return check.unknown(why(facts, "schema"))
    loose = [thing.name for thing in facts.described if thing.kind == "function" and not thing.sound]
    if not loose:
        return check.green("pinned", "functions with the owner's rights have a search_path of their own")
    return check.ill(
        "red",
        several(loose),
        "it has the owner's rights and its caller's search_path: whoever may call it can run anything as the owner",
        do="; ".join(
            f'alter function "{facts.schema}".{name} set search_path = pg_catalog, pg_temp' for name in loose[:3]
        ),
        value=len(loose),
    )


def _logged(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "logged tables")
    if facts.tables is None:
        return check.unknown(why(facts, "tables"))
    lost = [table.name for table in facts.tables if table.unlogged and table.name not in may_be_emptied()]
    if not lost:
        return check.green("all", "jobs and history survive a crash of the server")
    return check.ill(
        "red",
        f"{several(lost)} unlogged",
        "a crash of the server empties it, and a standby never has it",
        do="; ".join(f'alter table "{facts.schema}".{name} set logged' for name in lost[:3]),
        value=len(lost),
    )


def _public(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "PUBLIC")
    if facts.rights is None:
        return check.unknown(why(facts, "rights"))
    open_to_all = [right for right in facts.rights if right.grantee is None]
    if not open_to_all:
        return check.green("nothing", "whoever can only connect can neither read nor call anything of ours")
    everything = "".join(
        f'revoke all on all {kind}s in schema "{facts.schema}" from public; ' for kind in ("table", "function")
    )
    return check.ill(
        "red" if any(right.kind != "schema" for right in open_to_all) else "amber",
        several([f"{right.privilege} on {right.kind} {right.name}" for right in open_to_all]),
        "everybody who can connect to this database has these rights",
        do=f'{everything}revoke all on schema "{facts.schema}" from public',
        value=len(open_to_all),
    )


def _roles(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "roles")
    if facts.rights is None:
        return check.unknown(why(facts, "rights"))
    ours = {role.full_name(facts.schema): role for role in ROLES}
    if not any(right.grantee in ours for right in facts.rights):
        return check.green("not used", "only the owner, and whom you granted something, gets in")
    wrong, levels = list[str](), list[Level]()
    for name, role in ours.items():
        has = {right[1:] for right in facts.rights if right.grantee == name}
        wanted = set(_expected_rights(facts.schema, role))
        wrong += [f"{name} lacks {_right_text(*right)}" for right in sorted(wanted - has)]
        wrong += [f"{name} has {_right_text(*right)}" for right in sorted(has - wanted)]
        if wanted != has:
            levels.append("red" if wanted - has else "amber")
    policies = {f"{role.full_name(facts.schema)}_adds" for role in ROLES if role.events}
    if facts.policies is not None and not policies <= set(facts.policies):
        wrong.append("the policies on events are not in force")
        levels.append("red")
    if not wrong:
        return check.green(f"{len(ours)} as made", "each has its rights and no others")
    return check.ill(
        worst(levels),
        several(wrong),
        "a right that is lacking makes clients fail; one too many is a door left open",
        do="rowlock migrate --roles, which gives them what this version needs and takes away the rest",
        value=len(wrong),
    )


def _expected_rights(schema: str, role: Role) -> Iterator[tuple[str, str, str, str]]:
    """The rights that a role should have."""
    yield "schema", schema, "", "usage"
    for table, rights in role.rights.items():
        for privilege, columns in rights.items():
            yield from (("table", table, "" if columns == ALL else column, privilege) for column in columns)
    yield from (("function", function, "", "execute") for function in role.functions)


def _right_text(kind: str, name: str, part: str, privilege: str) -> str:
    return f"{privilege} on {kind} {name}" + (f" ({part})" if part else "")
