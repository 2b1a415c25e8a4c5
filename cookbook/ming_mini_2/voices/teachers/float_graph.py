"""Dynamic eight-bit products of an ONNX graph as float products, which GPUs have kernels for.

ONNX Runtime runs `MatMulInteger` and `ConvInteger` on the CPU alone. Their weights become float
matrices of the same integers, and inputs are no longer quantized: the scale of an input, by which
later nodes multiply the product, becomes 1. The result differs by the rounding of the inputs, which
it lacks.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

UNIT_SCALE = "unit_scale"
PRODUCTS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
# Biases are added to integer products, for which the graph rounds them: that is no longer needed.
ROUNDED_BIASES = ("bias_quant_rounded", "bias_quantized_node")


def to_float_graph(model: bytes) -> bytes:
    """Return the model with float products. Weights take four times the space.

    Raises:
        KeyError: The weights of a product are not constants of the graph.
    """
    import onnx

    quantized = onnx.load_model_from_string(model)
    graph = _Converter(quantized.graph).convert()
    converted = onnx.helper.make_model(
        graph, opset_imports=quantized.opset_import, ir_version=quantized.ir_version
    )
    return bytes(converted.SerializeToString())


class _Converter:
    """Converts one graph; `_added` are the constants that its new nodes read."""

    def __init__(self, graph: "GraphProto") -> None:
        self._graph = graph
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._added: dict[str, TensorProto] = {}

    def convert(self) -> "GraphProto":
        from onnx import helper

        graph = self._graph
        self._add(UNIT_SCALE, np.float32(1))
        nodes = [one for node in graph.node for one in self._convert_node(node)]
        read = {name for node in nodes for name in node.input}
        kept = [tensor for tensor in graph.initializer if tensor.name in read]
        constants = [*kept, *self._added.values()]
        return helper.make_graph(nodes, graph.name, graph.input, graph.output, constants)

    def _convert_node(self, node: "NodeProto") -> Iterable["NodeProto"]:
        convert: dict[str, Callable[[NodeProto], Iterator[NodeProto]]] = {
            "DynamicQuantizeLinear": self._keep_input,
            "DynamicQuantizeLSTM": self._convert_lstm,
            **dict.fromkeys(PRODUCTS, self._convert_product),
        }
        if node.op_type in convert:
            return convert[node.op_type](node)
        return self._skip_rounding(node) if node.name.endswith(ROUNDED_BIASES) else [node]

    def _keep_input(self, node: "NodeProto") -> Iterator["NodeProto"]:
        from onnx import helper

        values, scale, _ = node.output
        yield helper.make_node("Identity", [node.input[0]], [values])
        yield helper.make_node("Identity", [UNIT_SCALE], [scale])

    def _skip_rounding(self, node: "NodeProto") -> Iterator["NodeProto"]:
        from onnx import helper

        yield helper.make_node("Identity", list(node.input), list(node.output))

    def _convert_product(self, node: "NodeProto") -> Iterator["NodeProto"]:
        from onnx import helper

        values, weight, _, *zero_point = node.input
        matrix = self._read(weight)
        if zero_point:
            zero = self._read(zero_point[0])
            # Of a convolution there is one for each output channel, which comes first.
            wide = zero.ndim == 1 and zero.size > 1 and node.op_type == "ConvInteger"
            matrix = matrix - (zero.reshape(-1, *[1] * (matrix.ndim - 1)) if wide else zero)
        inputs = [values, self._add(f"{weight}_float", matrix)]
        product = helper.make_node(PRODUCTS[node.op_type], inputs, list(node.output))
        product.attribute.extend(node.attribute)
        yield product

    def _convert_lstm(self, node: "NodeProto") -> Iterator["NodeProto"]:
        from onnx import helper

        values, inner, outer, *rest = node.input
        states, scales = rest[:5], rest[5:]
        matrices = [
            self._add(f"{name}_float", self._dequantize(name, *scales[at : at + 2]))
            for name, at in ((inner, 0), (outer, 2))
        ]
        lstm = helper.make_node("LSTM", [values, *matrices, *states], list(node.output))
        lstm.attribute.extend(node.attribute)
        yield lstm

    def _dequantize(self, name: str, scale: str, zero_point: str) -> np.ndarray:
        """Return the weights of an LSTM [directions, gates, inputs]; they are stored transposed."""
        weights, scales, zeros = map(self._read, (name, scale, zero_point))
        # One scale for each direction, or for each of its gates.
        shape = (len(weights), 1, -1)
        return ((weights - zeros.reshape(shape)) * scales.reshape(shape)).swapaxes(1, 2)

    def _read(self, name: str) -> np.ndarray:
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self._constants[name]), dtype=np.float32)

    def _add(self, name: str, values: np.ndarray | np.float32) -> str:
        from onnx import numpy_helper

        self._added[name] = numpy_helper.from_array(np.asarray(values, order="C"), name)
        return name
