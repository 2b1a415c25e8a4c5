"""A graph with float products says what the quantized one says, but for the inputs' rounding."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from cookbook.ming_mini_2.voices.teachers.float_graph import to_float_graph

WIDTH, STEPS = 8, 6
# One step of eight bits for inputs of a range of about six.
STEP = 6 / 255


def quantized(name: str, *shape: int, channels: int = 1) -> dict[str, np.ndarray]:
    """Weights with their scale and zero point."""
    random = np.random.default_rng(sum(shape))
    zero = random.integers(100, 156, size=channels).astype(np.uint8)
    return {
        name: random.integers(0, 256, size=shape).astype(np.uint8),
        f"{name}_zero": zero if channels > 1 else zero.reshape(()),
        f"{name}_scale": np.array(0.003, np.float32),
    }


def build(nodes: list[Any], constants: dict[str, Any], shape: tuple[int, ...]) -> bytes:
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return bytes(model.SerializeToString())


QUANTIZE = helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "x_scale", "x_zero"])
SCALE = helper.make_node("Mul", ["x_scale", "w_scale"], ["scale"])


def product(kind: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, ["xq", "w", "x_zero", "w_zero"], [output], **attributes)


def matrix_product() -> bytes:
    nodes = [
        QUANTIZE,
        SCALE,
        product("MatMulInteger", "sum"),
        helper.make_node("Cast", ["sum"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["floats", "scale"], ["y"]),
    ]
    return build(nodes, quantized("w", WIDTH, 5, channels=5), (1, STEPS, WIDTH))


def convolution() -> bytes:
    """With a bias, as the quantizer of ONNX Runtime adds it: rounded, to the integers."""
    nodes = [
        QUANTIZE,
        SCALE,
        product("ConvInteger", "sum", pads=[1, 1]),
        helper.make_node("Div", ["bias", "scale"], ["ratio"]),
        helper.make_node("Floor", ["ratio"], ["whole"], name="bias_quant_rounded"),
        helper.make_node(
            "Cast", ["whole"], ["integers"], to=TensorProto.INT32, name="bias_quantized_node"
        ),
        helper.make_node("Add", ["sum", "integers"], ["biased"]),
        helper.make_node("Cast", ["biased"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["floats", "scale"], ["y"]),
    ]
    bias = np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4, 1)
    return build(nodes, quantized("w", 4, WIDTH, 3) | {"bias": bias}, (1, WIDTH, STEPS))


def recurrence() -> bytes:
    hidden = 5
    constants: dict[str, Any] = {}
    for name, size in (("w", WIDTH), ("r", hidden)):
        constants |= quantized(name, 2, size, 4 * hidden)
        constants |= {
            f"{name}_zero": np.full(2, 128, np.uint8),
            f"{name}_scale": np.array([0.003, 0.005], np.float32),
        }
    inputs = ["x", "w", "r", "", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    lstm = helper.make_node(
        "DynamicQuantizeLSTM",
        inputs,
        ["y"],
        domain="com.microsoft",
        hidden_size=hidden,
        direction="bidirectional",
    )
    return build([lstm], constants, (STEPS, 1, WIDTH))


@pytest.mark.parametrize("build_model", [matrix_product, convolution, recurrence])
def test_float_products_differ_by_the_inputs_rounding(build_model: Any) -> None:
    quantized_model = build_model()
    converted = to_float_graph(quantized_model)
    kinds = {node.op_type for node in onnx.load_model_from_string(converted).graph.node}
    assert not any("Integer" in kind or "Quantize" in kind for kind in kinds)
    shape = (STEPS, 1, WIDTH) if build_model is recurrence else None
    before, after = run(quantized_model, shape), run(converted, shape)
    assert before.shape == after.shape
    # Each of the inputs of a sum is off by half a step at most, and weights are below half of 1.
    np.testing.assert_allclose(after, before, atol=3 * WIDTH * STEP / 2 * 0.45)
    assert np.abs(after - before).mean() < 0.05 * np.abs(before).mean()


def run(model: bytes, shape: tuple[int, ...] | None) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (x,) = session.get_inputs()
    values = np.random.default_rng(7).normal(size=shape or x.shape).astype(np.float32)
    return np.asarray(session.run(None, {"x": values})[0])
