"""Two machine instructions that numba does not offer by name."""

from numba import types
from numba.extending import intrinsic


@intrinsic
def popcount(_context, x):
    """How many bits of an integer are set."""

    def emit(context, builder, _signature, arguments):
        wide = context.cast(builder, arguments[0], x, types.int64)
        return builder.ctpop(wide)

    return types.int64(x), emit


@intrinsic
def lowest(_context, x):
    """The index of the lowest set bit of a non-zero integer."""

    def emit(context, builder, _signature, arguments):
        wide = context.cast(builder, arguments[0], x, types.int64)
        zero_is_undefined = context.get_constant(types.boolean, True)
        return builder.cttz(wide, zero_is_undefined)

    return types.int64(x), emit
