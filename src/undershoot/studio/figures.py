"""Numbers as people read them."""

LEAST_DIGITS, MOST_DIGITS = 4, 17


def shown(value: float, beside: float | None = None) -> str:
    """The value with at least so many digits that it is above, at or below the other number as it truly is.

    Examples:
        >>> shown(1.5), shown(1.00004, 1), shown(0.99999999, 1), shown(7.0, 7)
        ('1.5', '1.00004', '0.99999999', '7')
    """
    for digits in range(LEAST_DIGITS, MOST_DIGITS):
        rounded = round(value, digits)
        if beside is None or ((rounded > beside) == (value > beside) and (rounded < beside) == (value < beside)):
            break
    return f"{rounded:.{digits}f}".rstrip("0").rstrip(".")
