"""Asking the memory for what will be needed soon."""

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte_pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number])
        functions: Any = cgutils
        function = functions.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        address = builder.bitcast(builder.gep(made.data, [arguments[1]]), byte_pointer)
        # To be read, to be kept in all caches, data.
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch: Any = extending.intrinsic(_prefetch)
"""prefetch(array, index): fetch array[index] into the cache without waiting for it. An index out of range is harmless."""
