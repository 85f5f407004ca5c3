"""ExecuTorch's programs with examples, `.bpte`: a `.pte`, inputs, and outputs expected of them.

Ref: ExecuTorch 1.5, devtools/bundled_program/schema/bundled_program_schema.fbs.
"""

from __future__ import annotations

from mizzen.flatbuffer.fields import Fields
from mizzen.flatbuffer.schema import Schema

SCHEMA = Schema(
    "ExecuTorch bundled program",
    "BundledProgram",
    b"BP08",
    {
        "Bool": "bool_val:bool",
        "BundledMethodTestCase": "inputs:[Value] expected_outputs:[Value]",
        "BundledMethodTestSuite": "method_name:str test_cases:[BundledMethodTestCase]",
        "BundledProgram": ("version:u32 method_test_suites:[BundledMethodTestSuite] program:[u8]"),
        "Double": "double_val:f64",
        "Int": "int_val:i64",
        "Tensor": "scalar_type:i8 sizes:[i32] data:[u8] dim_order:[u8]",
        "Value": "val:<ValueUnion>",
    },
    {"ValueUnion": ("NONE", "Tensor", "Int", "Bool", "Double")},
    {
        "Bool": Fields(read="bool_val"),
        "BundledMethodTestCase": Fields(read="inputs expected_outputs"),
        "BundledMethodTestSuite": Fields(read="method_name test_cases"),
        "BundledProgram": Fields(read="method_test_suites program", silent="version"),
        "Double": Fields(read="double_val"),
        "Int": Fields(read="int_val"),
        "Tensor": Fields(read="scalar_type sizes data dim_order"),
        "Value": Fields(read="val"),
    },
)

ENDING = ".bpte"
