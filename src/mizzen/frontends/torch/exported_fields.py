"""What becomes of each field of an exported program, `.pt2`.

What is read is read by PyTorch, which makes a graph of it. `exported_rules` refuses what is
refused, and leaves out some of what says nothing.

Ref: PyTorch 2.13, torch/_export/serde/schema.py.
"""

from __future__ import annotations

from mizzen.flatbuffer.fields import Fields, Table

_OBJECT = "an object of a Python class"
_TRAINS = "a program that trains"
_EFFECT = "an operator with effects, which a token orders"
_ARG = {"arg": _TRAINS}

FIELDS: Table = {
    "ExportedProgram": Fields(
        read="graph_module opset_version range_constraints schema_version verifiers torch_version",
        silent="guards_code",
    ),
    "GraphModule": Fields(
        read="graph signature module_call_graph", silent="metadata treespec_namedtuple_fields"
    ),
    "Graph": Fields(
        read="inputs outputs nodes tensor_values sym_int_values sym_bool_values "
        "is_single_tensor_return sym_float_values",
        refused={"custom_obj_values": _OBJECT},
    ),
    "Node": Fields(
        read="target inputs outputs is_hop_single_tensor_return name", silent="metadata"
    ),
    "NamedArgument": Fields(read="name arg kind"),
    "Argument": Fields(
        read="as_none as_tensor as_tensors as_int as_ints as_float as_floats as_string as_strings "
        "as_sym_int as_sym_ints as_scalar_type as_memory_format as_layout as_device as_bool "
        "as_bools as_sym_bool as_sym_bools as_graph as_optional_tensors as_operator as_sym_float "
        "as_sym_floats as_optional_tensor as_complex as_nested_tensors as_int_lists "
        "as_string_to_argument as_float_lists",
        refused={"as_custom_obj": _OBJECT},
    ),
    "ComplexValue": Fields(read="real imag"),
    "ConstantValue": Fields(read="as_none as_int as_float as_string as_bool"),
    "CustomObjArgument": Fields(refused={"name": _OBJECT, "class_fqn": _OBJECT}),
    "Device": Fields(read="type", silent="index"),
    "GraphArgument": Fields(read="name graph"),
    "GraphSignature": Fields(read="input_specs output_specs"),
    "InputSpec": Fields(
        read="user_input parameter buffer tensor_constant constant_input",
        refused={"custom_obj": _OBJECT, "token": _EFFECT},
    ),
    "OutputSpec": Fields(
        read="user_output buffer_mutation user_input_mutation parameter_mutation",
        refused={
            "loss_output": _TRAINS,
            "gradient_to_parameter": _TRAINS,
            "gradient_to_user_input": _TRAINS,
            "token": _EFFECT,
        },
    ),
    "BufferMutationSpec": Fields(read="arg buffer_name"),
    "ParameterMutationSpec": Fields(read="arg parameter_name"),
    "UserInputMutationSpec": Fields(read="arg user_input_name"),
    "GradientToParameterSpec": Fields(refused={**_ARG, "parameter_name": _TRAINS}),
    "GradientToUserInputSpec": Fields(refused={**_ARG, "user_input_name": _TRAINS}),
    "LossOutputSpec": Fields(refused=_ARG),
    "InputToBufferSpec": Fields(read="arg buffer_name persistent"),
    "InputToConstantInputSpec": Fields(read="name value"),
    "InputToCustomObjSpec": Fields(refused={"arg": _OBJECT, "custom_obj_name": _OBJECT}),
    "InputToParameterSpec": Fields(read="arg parameter_name"),
    "InputToTensorConstantSpec": Fields(read="arg tensor_constant_name"),
    "InputTokenSpec": Fields(refused={"arg": _EFFECT}),
    "OutputTokenSpec": Fields(refused={"arg": _EFFECT}),
    "TokenArgument": Fields(refused={"name": _EFFECT}),
    "UserInputSpec": Fields(read="arg"),
    "UserOutputSpec": Fields(read="arg"),
    "ModuleCallEntry": Fields(read="fqn signature"),
    "ModuleCallSignature": Fields(read="inputs outputs in_spec out_spec forward_arg_names"),
    "NamedTupleDef": Fields(silent="field_names"),
    "OptionalTensorArgument": Fields(read="as_tensor as_none"),
    "PayloadConfig": Fields(read="config"),
    "PayloadMeta": Fields(read="path_name is_param tensor_meta", refused={"use_pickle": _OBJECT}),
    "RangeConstraint": Fields(read="min_val max_val"),
    "SchemaVersion": Fields(read="major minor"),
    "SymBool": Fields(read="as_expr as_bool"),
    "SymBoolArgument": Fields(read="as_name as_bool"),
    "SymExpr": Fields(read="expr_str", silent="hint"),
    "SymExprHint": Fields(silent="as_int as_bool as_float"),
    "SymFloat": Fields(read="as_expr as_float"),
    "SymFloatArgument": Fields(read="as_name as_float"),
    "SymInt": Fields(read="as_expr as_int"),
    "SymIntArgument": Fields(read="as_name as_int"),
    "TensorArgument": Fields(read="name"),
    "TensorMeta": Fields(
        read="dtype sizes device strides storage_offset",
        silent="requires_grad",
        refused={"layout": "a tensor of which only some elements are stored"},
    ),
}
