"""Layers of small networks of whole numbers, for one state at a time, written as operations on vectors of sixteen numbers.

A compiler that does not know whether arrays overlap writes sums to memory and reads them again after every input; here they
stay in registers. All numbers are whole and below 2^24, so the order in which they are added does not matter.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import extending, types

from undershoot.kernels.networks import HIGHEST_ACTIVATION

LANES = 16
"""Widths of layers are multiples of this, and inputs of `TOGETHER`."""
TOGETHER = 4
"""Inputs whose products are summed apart, since a sum waits for the one before."""
FLOAT, NUMBER, INDEX = ir.FloatType(), ir.IntType(32), ir.IntType(64)
FLOATS, NUMBERS, BYTES = (ir.VectorType(kind, LANES) for kind in (FLOAT, NUMBER, ir.IntType(8)))
ROUNDER = 2.0**23
"""Adding it rounds to a whole number, halves to even."""


class _Code:
    """The code of one call: its arguments, and vectors at places in them."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> None:
        self.context, self.builder, self.signature, self.arguments = context, builder, signature, arguments

    def _place(self, argument: int, index: Any, kind: Any) -> Any:
        array = self.context.make_array(self.signature.args[argument])(self.context, self.builder, self.arguments[argument])
        return self.builder.bitcast(self.builder.gep(array.data, [index]), kind.as_pointer())

    def load(self, argument: int, index: Any, kind: Any) -> Any:
        """A number or a vector, from this index of an argument on."""
        return self.builder.load(self._place(argument, index, kind), align=1 if kind is BYTES else 4)

    def store(self, value: Any, argument: int, index: Any) -> None:
        """Likewise."""
        self.builder.store(value, self._place(argument, index, value.type), align=4)

    def everywhere(self, value: Any) -> Any:
        """A vector of one number."""
        none = ir.Constant(FLOATS, ir.Undefined)
        first = self.builder.insert_element(none, value, NUMBER(0))
        return self.builder.shuffle_vector(first, none, ir.Constant(NUMBERS, [0] * LANES))

    def loop(self, stop: Any, step: int, carried: list[Any], body: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """body(i, carried), for i = 0, step, ... below stop, at least once; it returns what is carried on."""
        builder, before = self.builder, self.builder.block
        head, behind = builder.append_basic_block(), builder.append_basic_block()
        builder.branch(head)
        builder.position_at_end(head)
        turn = builder.phi(INDEX)
        turn.add_incoming(INDEX(0), before)
        values = [builder.phi(value.type) for value in carried]
        for value, first in zip(values, carried, strict=True):
            value.add_incoming(first, before)
        results, following = body(turn, values), builder.add(turn, INDEX(step))
        end = builder.block
        turn.add_incoming(following, end)
        for value, result in zip(values, results, strict=True):
            value.add_incoming(result, end)
        builder.cbranch(builder.icmp_signed("<", following, stop), head, behind)
        builder.position_at_end(behind)
        return results

    def activated(self, sums: Any, scales: Any) -> Any:
        """As `activate` has it: the nearest whole number to sum * scale, halves to even, in 0..255."""
        builder, none = self.builder, _constant(0.0)
        scaled = builder.fmul(sums, scales)
        inside = builder.select(builder.fcmp_ordered(">", scaled, none), scaled, none)
        highest = _constant(float(HIGHEST_ACTIVATION))
        inside = builder.select(builder.fcmp_ordered("<", inside, highest), inside, highest)
        return builder.fsub(builder.fadd(inside, _constant(ROUNDER)), _constant(ROUNDER))


def _constant(value: float) -> Any:
    return ir.Constant(FLOATS, [value] * LANES)


def _layer(is_last: bool) -> Any:
    def typed(typing: Any, flat: Any, at: Any, inputs: Any, width: Any, given: Any, scales: Any, neuron: Any, out: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            code = _Code(context, builder, signature, arguments)
            _, at, inputs, width, _, _, neuron, _ = arguments
            bias = builder.add(at, builder.mul(inputs, width))

            def outputs(j: Any, _: list[Any]) -> list[Any]:
                column = builder.add(at, j)

                def more_inputs(first: Any, sums: list[Any]) -> list[Any]:
                    results = []
                    for q, total in enumerate(sums):
                        k = builder.add(first, INDEX(q))
                        weights = code.load(0, builder.add(column, builder.mul(k, width)), FLOATS)
                        product = builder.fmul(code.everywhere(code.load(4, k, FLOAT)), weights)
                        results.append(builder.fadd(total, product))
                    return results

                begin = [code.load(0, builder.add(bias, j), FLOATS), *([_constant(0.0)] * (TOGETHER - 1))]
                a, b, c, d = code.loop(inputs, TOGETHER, begin, more_inputs)
                total = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
                if not is_last:
                    total = code.activated(total, code.load(5, builder.add(neuron, j), FLOATS))
                code.store(total, 7, j)
                return []

            code.loop(width, LANES, [], outputs)
            return context.get_dummy_value()

        number = types.int64
        return types.void(flat, number, number, number, given, scales, number, out), generate

    return extending.intrinsic(typed)


hidden_layer: Any = _layer(is_last=False)
"""hidden_layer(flat, at, inputs, width, given, scales, neuron, out): activations of the inputs `given`. flat[at:]: the weights,
float32[inputs, width], and then the bias; scales[neuron:]: those of the layer."""
last_layer: Any = _layer(is_last=True)
"""Likewise, the sums themselves."""


def _added_rows(typing: Any, bias: Any, start: Any, rows: Any, width: Any, wanted: Any, count: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        _, start, _, width, _, count, _ = arguments

        def lanes(j: Any, _: list[Any]) -> list[Any]:
            def one_more(q: Any, totals: list[Any]) -> list[Any]:
                row = builder.add(builder.mul(code.load(4, q, INDEX), width), j)
                return [builder.add(totals[0], builder.sext(code.load(2, row, BYTES), NUMBERS))]

            (total,) = code.loop(count, 1, [code.load(0, builder.add(start, j), NUMBERS)], one_more)
            code.store(total, 6, j)
            return []

        code.loop(width, LANES, [], lanes)
        return context.get_dummy_value()

    number = types.int64
    return types.void(bias, number, rows, number, wanted, number, out), generate


add_rows: Any = extending.intrinsic(_added_rows)
"""add_rows(bias, start, rows, width, wanted, count, out): int32 sums of bias[start:] and the int8 rows wanted[:count], at least
one."""


def _activated_sums(typing: Any, sums: Any, at: Any, width: Any, scales: Any, neuron: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        _, at, width, _, neuron, _ = arguments

        def lanes(j: Any, _: list[Any]) -> list[Any]:
            floats = builder.sitofp(code.load(0, builder.add(at, j), NUMBERS), FLOATS)
            code.store(code.activated(floats, code.load(3, builder.add(neuron, j), FLOATS)), 5, j)
            return []

        code.loop(width, LANES, [], lanes)
        return context.get_dummy_value()

    return types.void(sums, types.int64, types.int64, scales, types.int64, out), generate


activate_sums: Any = extending.intrinsic(_activated_sums)
"""activate_sums(sums, at, width, scales, neuron, out): float32 activations of int32 sums."""
