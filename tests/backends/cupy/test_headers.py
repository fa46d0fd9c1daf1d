"""What is known of NVIDIA's libraries holds: numbers and arguments are those of the headers, where the wheels are installed."""

from __future__ import annotations

import ctypes
import enum
import re
from typing import Any

import pytest
from standin import headers

from cntk.backends.cupy import cublaslt, cudnn, libraries, pooling, rnnstack, tensors

CUBLASLT = "cublasLt.h"

NUMBERS = {
    "cublasLt.h": {
        "LAYOUT_BATCH_COUNT": "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT",
        "LAYOUT_BATCH_STRIDE": "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET",
        "DESC_TRANSA": "CUBLASLT_MATMUL_DESC_TRANSA",
        "DESC_TRANSB": "CUBLASLT_MATMUL_DESC_TRANSB",
        "DESC_EPILOGUE": "CUBLASLT_MATMUL_DESC_EPILOGUE",
        "DESC_BIAS_POINTER": "CUBLASLT_MATMUL_DESC_BIAS_POINTER",
        "EPILOGUE_DEFAULT": "CUBLASLT_EPILOGUE_DEFAULT",
        "EPILOGUE_RELU_BIAS": "CUBLASLT_EPILOGUE_RELU_BIAS",
        "EPILOGUE_BIAS": "CUBLASLT_EPILOGUE_BIAS",
        "EPILOGUE_BGRADA": "CUBLASLT_EPILOGUE_BGRADA",
        "EPILOGUE_BGRADB": "CUBLASLT_EPILOGUE_BGRADB",
        "PREFERENCE_WORKSPACE": "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES",
    },
    "cublas_api.h": {
        "COMPUTE_32F": "CUBLAS_COMPUTE_32F",
        "COMPUTE_32F_FAST_TF32": "CUBLAS_COMPUTE_32F_FAST_TF32",
        "COMPUTE_64F": "CUBLAS_COMPUTE_64F",
        "OP_T": "CUBLAS_OP_T",
    },
}
"""Constants of cublaslt.py, and what headers call them."""


@pytest.mark.parametrize(("file", "ours", "theirs"), [(file, *names) for file, table in NUMBERS.items() for names in table.items()])
def test_numbers_of_cublaslt(file: str, ours: str, theirs: str) -> None:
    assert getattr(cublaslt, ours) == headers.constants(file)[theirs]


def test_every_number_of_cublaslt_is_in_the_table() -> None:
    known = {name for table in NUMBERS.values() for name in table}
    numbers = {name for name, value in vars(cublaslt).items() if name.isupper() and isinstance(value, int)}
    assert numbers - known == {"WORKSPACE", "ALIGNMENT"}


def test_alignments_of_operands_and_result() -> None:
    names = [f"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{which}_BYTES" for which in "ABCD"]
    assert tuple(headers.constants(CUBLASLT)[name] for name in names) == cublaslt.PREFERENCE_ALIGNMENTS


@pytest.mark.parametrize(("dtype", "name"), [("float16", "16F"), ("bfloat16", "16BF"), ("float32", "32F"), ("float64", "64F")])
def test_numbers_of_element_types(dtype: str, name: str) -> None:
    assert cublaslt.TYPES[dtype] == headers.constants("library_types.h")[f"CUDA_R_{name}"]


@pytest.mark.parametrize("name", sorted(cublaslt.SIGNATURES))
def test_arguments_of_cublaslt(name: str) -> None:
    assert headers.agree(cublaslt.SIGNATURES[name], headers.arguments(CUBLASLT, name))


def test_what_is_known_of_an_algorithm() -> None:
    (body,) = re.findall(r"typedef struct \{([^{}]*)\} cublasLtMatmulHeuristicResult_t;", headers.text(CUBLASLT))
    fields = [declared.split() for declared in body.split(";")[:-1]]
    assert fields == [
        ["cublasLtMatmulAlgo_t", "algo"],
        ["size_t", "workspaceSize"],
        ["cublasStatus_t", "state"],
        ["float", "wavesCount"],
        ["int", "reserved[4]"],
    ]
    assert re.search(r"typedef struct \{\s*uint64_t data\[8\];\s*\} cublasLtMatmulAlgo_t;", headers.text(CUBLASLT))
    assert [name for name, _ in cublaslt.Algorithm._fields_] == ["algo", "workspace", "state", "waves", "reserved"]
    assert ctypes.sizeof(cublaslt.Algorithm) == 64 + 8 + 4 + 4 + 16


GRAPH, OPERATIONS, RECURRENCES = "cudnn_graph.h", "cudnn_ops.h", "cudnn_adv.h"


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (cudnn.Kind, "CUDNN_BACKEND_{}_DESCRIPTOR"),
        (cudnn.Type, "CUDNN_TYPE_{}"),
        (cudnn.Attribute, "CUDNN_ATTR_{}"),
        (cudnn.Note, "CUDNN_NUMERICAL_NOTE_{}"),
        (cudnn.Pointwise, "CUDNN_POINTWISE_{}"),
    ],
)
def test_numbers_of_cudnn(kind: type[enum.IntEnum], form: str) -> None:
    known = headers.constants(GRAPH)
    assert {member.name: known[form.format(member.name)] for member in kind} == {member.name: member.value for member in kind}


def test_other_numbers_of_cudnn() -> None:
    known = headers.constants(GRAPH)
    assert known["CUDNN_CROSS_CORRELATION"] == cudnn.CROSS_CORRELATION
    assert (known["CUDNN_HEUR_MODE_A"], known["CUDNN_HEUR_MODE_FALLBACK"]) == (cudnn.HEURISTICS_A, cudnn.HEURISTICS_FALLBACK)
    assert known["CUDNN_NUMERICAL_NOTE_TYPE_COUNT"] <= cudnn.MOST_NOTES
    names = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}
    assert {dtype: known[f"CUDNN_DATA_{name}"] for dtype, name in names.items()} == cudnn.TYPES


@pytest.mark.parametrize(
    ("file", "name", "types"),
    [
        (file, name, types)
        for file, module in (
            (GRAPH, cudnn),
            (OPERATIONS, tensors),
            (OPERATIONS, pooling),
            (RECURRENCES, rnnstack),
        )
        for name, types in module.SIGNATURES.items()
    ],
)
def test_arguments_of_cudnn(file: str, name: str, types: tuple[Any, ...]) -> None:
    file = OPERATIONS if "Dropout" in name else file
    assert headers.agree(types, headers.arguments(file, name))


def test_numbers_of_pooling() -> None:
    known = headers.constants(OPERATIONS)
    assert known["CUDNN_POOLING_MAX"] == pooling.MAXIMA
    assert known["CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING"] == pooling.AVERAGES_OF_ALL
    assert known["CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING"] == pooling.AVERAGES_INSIDE
    assert headers.constants(GRAPH)["CUDNN_PROPAGATE_NAN"] == pooling.PROPAGATE_NAN


def test_numbers_of_recurrent_layers() -> None:
    known = headers.constants(RECURRENCES)
    names = {"rnnReLU": "RNN_RELU", "rnnTanh": "RNN_TANH", "lstm": "LSTM", "gru": "GRU"}
    assert {cell: known[f"CUDNN_{name}"] for cell, name in names.items()} == rnnstack.CELLS
    ours = (
        (rnnstack.STANDARD, "RNN_ALGO_STANDARD"),
        (rnnstack.DOUBLE_BIAS, "RNN_DOUBLE_BIAS"),
        (rnnstack.LINEAR_INPUT, "LINEAR_INPUT"),
        (rnnstack.ONE_WAY, "UNIDIRECTIONAL"),
        (rnnstack.BOTH_WAYS, "BIDIRECTIONAL"),
        (rnnstack.PACKED, "RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED"),
        (rnnstack.INFERENCE, "FWD_MODE_INFERENCE"),
        (rnnstack.TRAINING, "FWD_MODE_TRAINING"),
        (rnnstack.ADD, "WGRAD_MODE_ADD"),
    )
    assert [known[f"CUDNN_{name}"] for _, name in ours] == [number for number, _ in ours]
    assert re.search(rf"#define CUDNN_RNN_PADDED_IO_DISABLED {rnnstack.NO_PADDING}\b", headers.text(RECURRENCES))
    maths = headers.constants(GRAPH)
    assert [maths[f"CUDNN_{name}_MATH"] for name in ("DEFAULT", "TENSOR_OP", "FMA")] == [
        rnnstack.DEFAULT_MATH,
        rnnstack.TENSOR_CORES,
        rnnstack.FMA_ALONE,
    ]


# ---- the libraries, as far as they do without a driver ----


def loaded(library: libraries.Library) -> libraries.Loaded:
    try:
        return libraries.load(library)
    except libraries.Missing as error:
        pytest.skip(f"the library is not installed: {error}")


@pytest.fixture
def lt() -> Any:
    library = loaded(libraries.CUBLASLT)
    return {name: library.function(name, types) for name, types in cublaslt.SIGNATURES.items()}


def test_the_library_itself_takes_descriptions(lt: Any) -> None:
    for compute, scale in (
        (cublaslt.COMPUTE_32F, "float32"),
        (cublaslt.COMPUTE_32F_FAST_TF32, "float32"),
        (cublaslt.COMPUTE_64F, "float64"),
    ):
        made = ctypes.c_void_p()
        lt["cublasLtMatmulDescCreate"](ctypes.byref(made), compute, cublaslt.TYPES[scale])
        for attribute, value in (
            (cublaslt.DESC_TRANSA, ctypes.c_int(cublaslt.OP_T)),
            (cublaslt.DESC_EPILOGUE, ctypes.c_int(cublaslt.EPILOGUE_RELU_BIAS)),
            (cublaslt.DESC_BIAS_POINTER, ctypes.c_void_p(256)),
        ):
            cublaslt._set(lt["cublasLtMatmulDescSetAttribute"], made, attribute, value)
        lt["cublasLtMatmulDescDestroy"](made)


def test_the_library_itself_takes_layouts_and_preferences(lt: Any) -> None:
    for dtype in cublaslt.TYPES.values():
        made = ctypes.c_void_p()
        lt["cublasLtMatrixLayoutCreate"](ctypes.byref(made), dtype, 3, 5, 3)
        cublaslt._set(lt["cublasLtMatrixLayoutSetAttribute"], made, cublaslt.LAYOUT_BATCH_COUNT, ctypes.c_int(2))
        cublaslt._set(lt["cublasLtMatrixLayoutSetAttribute"], made, cublaslt.LAYOUT_BATCH_STRIDE, ctypes.c_int64(15))
        lt["cublasLtMatrixLayoutDestroy"](made)
    made = ctypes.c_void_p()
    lt["cublasLtMatmulPreferenceCreate"](ctypes.byref(made))
    set_attribute = lt["cublasLtMatmulPreferenceSetAttribute"]
    cublaslt._set(set_attribute, made, cublaslt.PREFERENCE_WORKSPACE, ctypes.c_size_t(cublaslt.WORKSPACE))
    for attribute in cublaslt.PREFERENCE_ALIGNMENTS:
        cublaslt._set(set_attribute, made, attribute, ctypes.c_uint32(cublaslt.ALIGNMENT))
    lt["cublasLtMatmulPreferenceDestroy"](made)


def test_errors_have_the_librarys_own_names(lt: Any) -> None:
    with pytest.raises(RuntimeError, match=r"cublasLtMatmulDescSetAttribute failed with CUBLAS_STATUS_\w+ \(\d+\) when given"):
        lt["cublasLtMatmulDescSetAttribute"](None, cublaslt.DESC_EPILOGUE, None, 4)


@pytest.mark.parametrize("library", [libraries.CUBLASLT, libraries.CUDNN, libraries.NCCL], ids=lambda library: library.name)
def test_installed_libraries_are_found_and_have_a_version_that_will_do(library: libraries.Library) -> None:
    found = loaded(library)
    least, end = library.versions
    assert least <= found.version < end
    assert found.name_of(0)
