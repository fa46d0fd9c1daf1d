"""Formats of model files."""

from ...core.extension.hookspecs import Register, RegisterOnnxReader, RegisterOnnxWriter, hookimpl


@hookimpl
def cntk_register_model_formats(register: Register) -> None:
    register("CNTKv2", "cntk.plugins.formats.cntk_v2:CNTKv2")
    register("safetensors", "cntk.plugins.formats.safetensors:SafeTensors")
    register("CNTKv1", "cntk.plugins.formats.v1:CNTKv1")
    register("onnx", "cntk.plugins.formats.onnx.format:Onnx")
    register("ONNX", "cntk.plugins.formats.onnx.legacy:LegacyOnnx")


@hookimpl
def cntk_register_onnx_writers(register: RegisterOnnxWriter) -> None:
    from .onnx.writing import register_writers

    register_writers(register)


@hookimpl
def cntk_register_onnx_readers(register: RegisterOnnxReader) -> None:
    from .onnx.reading.table import DOMAINS, READERS

    for module, names in READERS.items():
        for op_type, function in names.items():
            register(op_type, DOMAINS.get(module, ""), f"cntk.plugins.formats.onnx.reading.{module}:{function}")
