# SPDX-License-Identifier: GPL-2.0
"""What a change did: the functions whose cost is not what it was in an older measurement."""

LEAST = 0.5  # instructions per I/O that are worth a line


def changes(old, new, row, driver):
    """(difference, before, after, class, symbol), the largest first."""
    before, after = old.symbols(row, driver), new.symbols(row, driver)
    found = []
    for key in before.keys() | after.keys():
        a, b = before.get(key, 0), after.get(key, 0)
        if abs(b - a) >= max(LEAST, 0.002 * max(a, b)):
            found.append((b - a, a, b, *key))
    return sorted(found, key=lambda change: -abs(change[0]))


def lines(old, new, driver, limit=15):
    """For people, row by row."""
    for row in new.rows:
        a, b = old.get(row, driver), new.get(row, driver)
        if a is None or b is None:
            continue
        own = f"driver + abstraction {old.own(row, driver):,.1f} -> {new.own(row, driver):,.1f}"
        locked = f"locked {old.get(row, driver, 'locked'):.2f} -> {new.get(row, driver, 'locked'):.2f}"
        yield f"{row} ({driver}): all {a:,.0f} -> {b:,.0f}, {own}, {locked}"
        found = changes(old, new, row, driver)
        for difference, was, now, kind, symbol in found[:limit]:
            yield f"    {difference:+10,.1f}  {was:10,.1f} -> {now:<10,.1f} {kind:16} {symbol}"
        if len(found) > limit:
            yield f"    ... and {len(found) - limit} smaller ones"
