"""The names that CNTK's modules show beside what they offer, by module and by where each comes from.

``name=other`` stands for what is called ``other`` there.  The row ``modules`` lists modules; all other rows name the module that has
the names.
"""

from __future__ import annotations

MODULES = "modules"

NAMES: dict[str, dict[str, str]] = {
    "cntk": {
        "cntk.internal.sanitize": (
            "data_type_to_dtype sanitize_axis sanitize_axis_list sanitize_batch sanitize_convolution_args sanitize_dtype_cntk "
            "sanitize_dynamic_axes sanitize_function sanitize_input sanitize_multi_axis_reduction_list sanitize_permutation "
            "sanitize_pooling_args sanitize_shape sanitize_var_map"
        ),
        "cntk.internal.swig_helper": "map_if_possible typemap",
        "cntk.internal.utils": "get_data_type",
        "cntk.io": "MinibatchData",
        "cntk.sample_installer": "install_samples",
        "__future__": "division print_function",
        "enum": "Enum unique",
        MODULES: (
            "_cntk_py C=cntk cntk_py_init=cntk.cntk_py_init ctypes enum evaluator=cntk.eval.evaluator np=numpy numbers os platform "
            "sample_installer=cntk.sample_installer sparse=scipy.sparse sys utils=cntk.utils warnings"
        ),
    },
    "cntk.axis": {
        "cntk.internal.swig_helper": "typemap",
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.cntk_py": {
        "cntk.cntk_py.constants": (
            "chunk_id_max data_type_name data_type_size DataUnit_Minibatch DataUnit_Sample DataUnit_Sweep "
            "default_param_init_filter_rank default_param_init_output_rank default_param_init_scale default_profiler_buffer_size "
            "device_kind_name is_sparse_storage_format MaskKind_Invalid MaskKind_SequenceBegin MaskKind_Valid ModelFormat_CNTKv2 "
            "ModelFormat_ONNX PaddingMode_CONSTANTPAD PaddingMode_REFLECTPAD PaddingMode_SYMMETRICPAD ParameterCloningMethod_Clone "
            "ParameterCloningMethod_Freeze ParameterCloningMethod_Invalid ParameterCloningMethod_Share PoolingType_Average "
            "PoolingType_Max sentinel_value_for_auto_select_random_seed sentinel_value_for_infer_param_init_rank sequence_len_max "
            "StorageFormat_Dense StorageFormat_SparseBlockCol StorageFormat_SparseCSC TimesNoInferredInputRank "
            "TimesReduceSequenceAxisWithoutInferredInputRank TraceLevel_Error TraceLevel_Info TraceLevel_Warning variable_kind_name "
            "VariableKind_Constant VariableKind_Input VariableKind_Output VariableKind_Parameter VariableKind_Placeholder"
        ),
        "cntk.cntk_py.dictionary": (
            "Dictionary Dictionary_load=Dictionary.load DictionaryValue DictionaryValue_load=DictionaryValue.load "
            "DictionaryValue_type_name=DictionaryValue.type_name DictionaryValueFromDict=DictionaryValue "
            "DictionaryValueFromNDArrayView=DictionaryValue DictionaryValueFromTrainingDoubleParameterSchedule=DictionaryValue"
        ),
        "cntk.cntk_py.identifiers": "generate_uid new_unique_id",
        "cntk.cntk_py.initializers": (
            "bilinear_initializer constant_initializer glorot_normal_initializer glorot_uniform_initializer he_normal_initializer "
            "he_uniform_initializer normal_initializer random_initializer_with_rank truncated_normal_initializer "
            "uniform_initializer xavier_initializer"
        ),
        "cntk.cntk_py.native": (
            "_register_deserializer_factory _register_udf_deserialize_callback BackPropState Chunk ChunkInfo "
            "convolution_sequence_shape create_deserializer DataDeserializer DenseSequenceData DeserializerFactory gather_packed "
            "GPUProperties IDictionarySerializable make_shared minibatch_size_schedule_deserialize MinibatchInfo packed_index "
            "scatter_packed SequenceDataBase SequenceInfo SequenceKey SparseSequenceData spatial_convolution_sequence_shape "
            "training_double_parameter_schedule_deserialize UDFDeserializeCallbackWrapper UserBackPropState "
            "UserBackPropState_create UserBackPropState_data"
        ),
        "cntk.cntk_py.operators": (
            "abs acos alias argmax argmin as_block as_composite asin asinh assign atan atanh batch_normalization bernoulli_random "
            "bernoulli_random_like binary_cross_entropy broadcast_as cast ceil classification_error clip combine constant_like "
            "convolution convolution_transpose cos cosh cosine_distance cosine_distance_with_negative_samples crop "
            "cross_entropy_with_softmax custom_proxy_op depth_to_space dropout edit_distance_error element_and element_divide "
            "element_max element_min element_not element_or element_select element_times element_xor elu equal exp expand_dims "
            "eye_like first flatten floor forward_backward future_value gather gather_op gemm greater greater_equal gumbel_random "
            "gumbel_random_like hard_sigmoid hardmax image_scaler is_first is_last is_within labels_to_graph lambda_rank last "
            "leaky_re_lu less less_equal local_response_normalization log log_add_exp log_softmax mat_mul mean "
            "mean_variance_normalization minus nce_loss ndcg_at_1 negate normal_random normal_random_like not_equal one_hot_op "
            "ones_like optimized_rnnstack pad past_value per_dim_mean_variance_normalize plus pooling pow pre_lu random_sample "
            "random_sample_inclusion_frequency re_lu reciprocal reconcile_dynamic_axes reduce_elements reduce_l1 reduce_l2 "
            "reduce_log_sum reduce_max reduce_mean reduce_min reduce_prod reduce_sum reduce_sum_square reshape roipooling round "
            "scatter selu sequence_reduce_max sequence_reduce_sum sequence_slice sequence_softmax sigmoid sin sinh slice softmax "
            "softplus softsign space_to_depth spatial_convolution splice sqrt square squared_error squeeze stop_gradient "
            "straight_through sum tan tanh times times_transpose to_batch to_sequence to_sequence_like top_k transpose "
            "transpose_axes uniform_random uniform_random_like unpack unpack_batch unpooling unsqueeze "
            "weighted_binary_cross_entropy where zeroes_with_dynamic_axes_like zeros_like"
        ),
        "cntk.cntk_py.readers": (
            "base64_image_deserializer cbf_deserializer create_composite_minibatch_source ctf_deserializer htk_feature_deserializer "
            "htk_mlf_binary_deserializer htk_mlf_deserializer HTKFeatureConfiguration image_deserializer lattice_deserializer "
            "reader_color reader_crop reader_mean reader_scale text_format_minibatch_source"
        ),
        "cntk.cntk_py.settings": (
            "disable_cpueval_optimization disable_forward_values_sharing disable_gradient_accumulation_optimization "
            "enable_cpueval_optimization enable_forward_values_sharing enable_gradient_accumulation_optimization "
            "enable_reversing_tensor_shapes_in_error_messages enable_synchronous_gpukernel_execution force_deterministic_algorithms "
            "get_max_num_cputhreads get_mpipack_threshold is_synchronous_gpukernel_execution_enabled print_built_info "
            "print_gpu_info set_automatic_unpacking_of_packed_values set_computation_network_trace_level "
            "set_gpumemory_allocation_trace_level set_math_lib_trace_level set_max_num_cputhreads set_mpipack_threshold "
            "should_force_deterministic_algorithms should_use_sparse_gradient_aggregation_in_data_parallel_sgd "
            "use_sparse_gradient_aggregation_in_data_parallel_sgd"
        ),
        "cntk.cntk_py.shapes": "NDMask NDShape NDShape_unknown=NDShape.unknown",
        "cntk.cntk_py.training": (
            "create_block_momentum_distributed_learner create_data_parallel_distributed_learner create_evaluator "
            "create_quantized_data_parallel_distributed_learner create_trainer create_training_session disable_node_timeing "
            "enable_node_timing momentum_from_time_constant mpicommunicator number_of_workers quantized_mpicommunicator "
            "QuantizedDistributedCommunicator TensorBoardFileWriter trainer_impl worker_global_rank"
        ),
        "cntk.cntk_py.values": "NDArrayViewDouble NDArrayViewFloat Value_create",
        "cntk.cntk_py.variables": (
            "Constant ConstantDouble ConstantFloat input_variable output_variable Parameter ParameterDouble ParameterFloat "
            "placeholder_variable"
        ),
        "cntk.comparison": "are_equal are_equivalent",
        "cntk.core.types.axis": (
            "Axis Axis_all_axes=Axis.all_axes Axis_all_static_axes=Axis.all_static_axes "
            "Axis_default_batch_axis=Axis.default_batch_axis Axis_default_dynamic_axis=Axis.default_dynamic_axis "
            "Axis_default_input_variable_dynamic_axes=Axis.default_input_variable_dynamic_axes "
            "Axis_end_static_axis=Axis.end_static_axis Axis_new_unique_dynamic_axis=Axis.new_unique_dynamic_axis "
            "Axis_operand_sequence_axis=Axis.operand_sequence_axis Axis_unknown_dynamic_axes=Axis.unknown_dynamic_axes"
        ),
        "cntk.core.extension.device": (
            "always_allow_setting_default_device DeviceDescriptor DeviceDescriptor_all_devices=all_devices "
            "DeviceDescriptor_cpu_device=cpu DeviceDescriptor_get_gpu_properties=get_gpu_properties DeviceDescriptor_gpu_device=gpu "
            "DeviceDescriptor_set_excluded_devices=set_excluded_devices "
            "DeviceDescriptor_try_set_default_device=try_set_default_device DeviceDescriptor_use_default_device=use_default_device "
            "DeviceKind_CPU=DeviceKind.CPU DeviceKind_GPU=DeviceKind.GPU"
        ),
        "cntk.core.common.dtypes": (
            "DataType_BFloat16=DataType.BFloat16 DataType_Double=DataType.Double "
            "DataType_Float16=DataType.Float16 DataType_Float=DataType.Float "
            "DataType_Int16=DataType.Int16 DataType_Int8=DataType.Int8 DataType_UChar=DataType.UChar "
            "DataType_Unknown=DataType.Unknown"
        ),
        "cntk.core.graph.function": (
            "allow_renaming_functions Function Function__deserialize=Function._deserialize Function_load=Function.load "
            "Function_load_from_buffer=Function.load_from_buffer"
        ),
        "cntk.core.operators.native": (
            "Function_native_user_function=native_user_function "
            "Function_register_native_user_function=register_native_user_function is_native_user_function_registered"
        ),
        "cntk.plugins.progress.base": "ProgressWriter",
        "cntk.core.common.random": "generate_random_seed get_random_seed is_random_seed_fixed reset_random_seed set_fixed_random_seed",
        "cntk.core.common.shape": "FreeDimension InferredDimension",
        "cntk.core.values.value": (
            "NDArrayView NDArrayView_random_uniform_double=NDArrayView.random_uniform_double "
            "NDArrayView_random_uniform_float=NDArrayView.random_uniform_float Value "
            "Value_create_batch_double=Value.create_batch_double Value_create_batch_float=Value.create_batch_float "
            "Value_create_dense_double=Value.create_dense_double Value_create_dense_float=Value.create_dense_float "
            "Value_create_one_hot_double=Value.create_one_hot_double Value_create_one_hot_float=Value.create_one_hot_float "
            "Value_create_sequence_double=Value.create_sequence_double Value_create_sequence_float=Value.create_sequence_float"
        ),
        "cntk.core.graph.variable": "Constant_scalar=Constant.scalar Variable",
        "cntk.debugging": "disable_profiler enable_profiler save_as_legacy_model set_checked_mode start_profiler stop_profiler",
        "cntk.eval": "Evaluator",
        "cntk.io": "MinibatchData MinibatchSource StreamConfiguration StreamInformation",
        "cntk.io.config": "MinibatchSourceConfig OptionalBool to_dictionary",
        "cntk.learners": "default_unit_gain_value Learner momentum_as_time_constant_schedule set_default_unit_gain_value",
        "cntk.learners.cntk_py_factories": (
            "ada_delta_learner ada_grad_learner adam_learner AdditionalLearningOptions fsada_grad_learner momentum_sgd_learner "
            "nesterov_learner rmsprop_learner sgd_learner SizeTWrapper"
        ),
        "cntk.learners.schedules": (
            "minibatch_size_schedule=TrainingParameterSchedule training_double_parameter_schedule=TrainingParameterSchedule"
        ),
        "cntk.learners.universal_learner": "universal_learner=Universal",
        "cntk.logging": "get_trace_level set_trace_level",
        "cntk.losses": "lattice_sequence_with_softmax",
        "cntk.statistics": "compute_input_per_dim_means_and_inv_std_devs",
        "cntk.train": (
            "CheckpointConfig CrossValidationConfig DistributedCommunicator=Communicator "
            "DistributedCommunicator_finalize=Communicator.finalize DistributedLearner DistributedWorkerDescriptor=WorkerDescriptor "
            "TestConfig Trainer TrainingSession"
        ),
        "numpy": "float16 float16_create=float16",
        "operator": "Axis_eq=eq DeviceDescriptor_eq=eq eq Variable_eq=is_",
        MODULES: "weakref",
    },
    "cntk.core": {
        "cntk.compatibility.internals": "_is_c_contiguous _sparse_to_dense_network_cache",
        "cntk.device": "cpu DeviceKind use_default_device",
        "cntk.internal.sanitize": "data_type_to_dtype sanitize_batch",
        "cntk.internal.swig_helper": "typemap",
        "cntk.plugins.user_functions": "user_function",
        MODULES: "cntk_py=cntk.cntk_py np=numpy numbers sparse=scipy.sparse warnings",
    },
    "cntk.debugging": {
        "cntk.plugins.user_functions": "user_function",
        "cntk.internal.swig_helper": "map_if_possible",
        "cntk.ops": "output_variable",
        "cntk.ops.functions": "CloneMethod UserFunction",
        "__future__": "division print_function",
        "collections": "defaultdict",
        MODULES: "cntk_py=cntk.cntk_py debug=cntk.debugging.debug profiler=cntk.debugging.profiler sys",
    },
    "cntk.debugging.debug": {
        "cntk.compatibility.internals": "_DebugState _nodes_to_debug",
        "cntk.plugins.user_functions": "user_function",
        "cntk.internal.swig_helper": "map_if_possible",
        "cntk.ops": "output_variable",
        "cntk.ops.functions": "CloneMethod UserFunction",
        "collections": "defaultdict",
        MODULES: "cntk_py=cntk.cntk_py sys",
    },
    "cntk.debugging.profiler": {
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.default_options": {
        "cntk.core.common.options": "_GlobalOptions=global_options _OptionsContextManager=OptionsScope",
    },
    "cntk.device": {
        "cntk.internal.swig_helper": "typemap",
        "enum": "Enum unique",
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.eval": {
        "cntk.device": "use_default_device",
        "cntk.internal.sanitize": "sanitize_function sanitize_var_map",
        "cntk.internal.swig_helper": "typemap",
        "cntk.io": "MinibatchData",
        MODULES: "cntk_py=cntk.cntk_py evaluator=cntk.eval.evaluator",
    },
    "cntk.eval.evaluator": {
        "cntk.device": "use_default_device",
        "cntk.internal.sanitize": "sanitize_function sanitize_var_map",
        "cntk.internal.swig_helper": "typemap",
        "cntk.io": "MinibatchData",
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.initializer": {
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.internal": {
        "cntk.axis": "Axis",
        "cntk.compatibility.internals": "_DeserializerFactory _serialization_version _serialize _UDFDeserializeCallbackWrapper",
        MODULES: (
            "C=cntk cntk cntk_py=cntk.cntk_py collections np=numpy numbers sanitize=cntk.internal.sanitize "
            "swig_helper=cntk.internal.swig_helper utils=cntk.internal.utils"
        ),
    },
    "cntk.internal.sanitize": {
        "cntk.axis": "Axis",
        "cntk.compatibility.internals": "_sanitize_common_conv_args _sparse_to_dense_network_cache",
        "cntk.internal.swig_helper": "typemap",
        MODULES: "C=cntk cntk_py=cntk.cntk_py collections np=numpy numbers",
    },
    "cntk.internal.swig_helper": {
        "cntk.compatibility.internals": "_typemap",
        "functools": "wraps",
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.internal.utils": {
        "cntk.cntk_py": "Dictionary DictionaryValue DictionaryValueFromDict DictionaryValueFromNDArrayView",
        "cntk.compatibility.internals": "_VARIABLE_OR_FUNCTION",
        "cntk.core": "NDArrayView",
        MODULES: "cntk_py=cntk.cntk_py np=numpy",
    },
    "cntk.io": {
        "cntk.compatibility.internals": "_dense_to_str _process_image_deserializer_args _sparse_to_str",
        "cntk.core": "Value",
        "cntk.device": "use_default_device",
        "cntk.internal.sanitize": "is_string sanitize_dtype_cntk",
        "cntk.internal.swig_helper": "typemap",
        "cntk.internal.utils": "_py_dict_to_cntk_dict",
        "cntk.logging": "get_trace_level TraceLevel",
        "cntk.tensor": "ArrayMixin",
        "cntk.variables": "Record",
        MODULES: "cntk cntk_py=cntk.cntk_py np=numpy transforms=cntk.io.transforms uuid warnings",
    },
    "cntk.io.transforms": {
        "cntk.internal.sanitize": "sanitize_2d_number sanitize_range",
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.layers": {
        "cntk": "InferredDimension SentinelValueForAutoSelectRandomSeed",
        "cntk.axis": "Axis",
        "cntk.cntk_py": "NDShape",
        "cntk.default_options": "default_override_or get_default_override is_default_override",
        "cntk.internal.sanitize": "sanitize_shape",
        "cntk.internal.utils": "get_python_function_arguments map_function_arguments",
        "cntk.ops": (
            "alias batch_normalization combine convolution convolution_transpose dropout placeholder pooling PoolingType_Average "
            "PoolingType_Max reconcile_dynamic_axes reduce_mean reshape sigmoid slice softplus splice sqrt tanh times unpooling"
        ),
        "cntk.variables": "Constant Parameter Record Variable",
        "__future__": "division",
        "inspect": "getargspec=getfullargspec",
        "types": "FunctionType",
        "warnings": "warn",
        MODULES: (
            "attention=cntk.layers.models.attention blocks=cntk.layers.blocks C=cntk "
            "higher_order_layers=cntk.layers.higher_order_layers layers=cntk.layers.layers models=cntk.layers.models np=numpy "
            "sequence=cntk.ops.sequence typing=cntk.layers.typing"
        ),
    },
    "cntk.layers.blocks": {
        "cntk": "InferredDimension",
        "cntk.compatibility.layers": "_get_initial_state_or_default _INFERRED _initializer_for _inject_name _RecurrentBlock",
        "cntk.default_options": "default_override_or get_default_override",
        "cntk.initializer": "glorot_uniform",
        "cntk.internal.sanitize": "_as_tuple",
        "cntk.ops": "alias combine placeholder sigmoid slice softplus tanh times",
        "cntk.ops.functions": "BlockFunction Function",
        "cntk.variables": "Constant Parameter",
        "__future__": "division",
        MODULES: "np=numpy",
    },
    "cntk.layers.higher_order_layers": {
        "cntk.layers.blocks": "_inject_name identity",
        "inspect": "getargspec=getfullargspec",
        "types": "FunctionType",
    },
    "cntk.layers.layers": {
        "cntk": "SentinelValueForAutoSelectRandomSeed",
        "cntk.cntk_py": "NDShape",
        "cntk.compatibility.layers": "_INFERRED _pad_to_shape _Pooling _window",
        "cntk.default_options": "default_override_or get_default_override is_default_override",
        "cntk.internal.sanitize": "_as_tuple",
        "cntk.layers.blocks": "_initializer_for identity UntestedBranchError",
        "cntk.ops": (
            "batch_normalization convolution convolution_transpose dropout pooling PoolingType_Average PoolingType_Max reduce_mean "
            "reshape splice sqrt times unpooling"
        ),
        "cntk.ops.functions": "BlockFunction Function",
        "cntk.variables": "Constant Parameter Record",
        "__future__": "division",
        MODULES: "C=cntk np=numpy sequence=cntk.ops.sequence",
    },
    "cntk.layers.models": {
        "cntk.default_options": "default_options default_override_or get_default_override",
        "cntk.initializer": "glorot_uniform",
        "cntk.layers.blocks": "Stabilizer",
        "cntk.layers.layers": "Dense Label",
        "cntk.layers.sequence": "PastValueWindow",
        "cntk.ops.functions": "Function",
        "__future__": "division",
        "warnings": "warn",
        MODULES: "attention=cntk.layers.models.attention C=cntk",
    },
    "cntk.layers.models.attention": {
        "cntk.default_options": "default_options default_override_or get_default_override",
        "cntk.initializer": "glorot_uniform",
        "cntk.layers.blocks": "_inject_name Stabilizer",
        "cntk.layers.layers": "Dense Label",
        "cntk.layers.sequence": "PastValueWindow",
        "cntk.ops.functions": "Function",
        "__future__": "division",
        "warnings": "warn",
        MODULES: "C=cntk",
    },
    "cntk.layers.sequence": {
        "cntk": "InferredDimension",
        "cntk.compatibility.layers": "_sanitize_function _santize_step_function",
        "cntk.default_options": "default_override_or get_default_override",
        "cntk.initializer": "glorot_uniform",
        "cntk.layers.blocks": (
            "_get_initial_state_or_default _inject_name ForwardDeclaration GRU identity LSTM RNNStep RNNUnit Stabilizer UntestedBranchError"
        ),
        "cntk.ops": "alias combine placeholder reconcile_dynamic_axes sigmoid slice softplus splice tanh times",
        "cntk.ops.functions": "BlockFunction Function",
        "cntk.variables": "Constant Parameter Record",
        "__future__": "division",
        MODULES: "np=numpy sequence=cntk.ops.sequence",
    },
    "cntk.layers.typing": {
        "cntk.axis": "Axis",
        "cntk.compatibility.layers": "_make_seq_meta _make_tensor_meta",
        "cntk.internal.sanitize": "_as_tuple sanitize_shape",
        "cntk.internal.utils": "get_python_function_arguments map_function_arguments",
        "cntk.variables": "Record Variable",
        MODULES: "np=numpy",
    },
    "cntk.learners": {
        "cntk.compatibility.learners": (
            "_infer_learning_parameter_schedule _infer_learning_rate_schedule_and_ref_minibatch_size "
            "_infer_ref_minibatch_size_from_legacy_use_mean_gradient _prepare_training_parameter_list _verify_learning_rate_type "
            "_verify_momentum_type"
        ),
        "cntk.core": "asarray NDArrayView",
        "cntk.internal.swig_helper": "map_if_possible typemap",
        "enum": "Enum unique",
        MODULES: "cntk_py=cntk.cntk_py np=numpy utils=cntk.internal.utils warnings",
    },
    "cntk.logging": {
        "cntk.device": "cpu",
        "cntk.variables": "Variable",
        "__future__": "division print_function",
        "enum": "Enum unique",
        MODULES: "cntk_py=cntk.cntk_py core=cntk.core os sys time",
    },
    "cntk.logging.graph": {
        "cntk.variables": "Variable",
        MODULES: "os sys",
    },
    "cntk.logging.progress_print": {
        "cntk.compatibility.internals": "_avg _warn_deprecated",
        "cntk.device": "cpu",
        "__future__": "division print_function",
        MODULES: "cntk_py=cntk.cntk_py core=cntk.core sys time",
    },
    "cntk.losses": {
        "cntk": "auto_select",
        "cntk.axis": "Axis",
        "cntk.internal.sanitize": "sanitize_axis sanitize_dynamic_axes sanitize_input sanitize_shape",
        "cntk.internal.swig_helper": "typemap",
        "cntk.internal.utils": "get_data_type",
        "cntk.ops": "parameter softmax times",
        "cntk.ops.functions": "CloneMethod Function",
        "cntk.variables": "Constant Parameter Variable",
        "__future__": "division print_function",
        MODULES: "C=cntk np=numpy",
    },
    "cntk.metrics": {
        "cntk.internal.sanitize": "sanitize_axis sanitize_input",
        "cntk.internal.swig_helper": "typemap",
        "cntk.internal.utils": "get_data_type",
        "__future__": "division print_function",
    },
    "cntk.misc": {
        MODULES: "C=cntk converter=cntk.misc.converter np=numpy optimized_rnnstack_converter=cntk.misc.optimized_rnnstack_converter",
    },
    "cntk.misc.converter": {
        MODULES: "C=cntk",
    },
    "cntk.misc.optimized_rnnstack_converter": {
        "cntk.compatibility.internals": "_from_optimized_rnnstack",
        "cntk.misc.converter": "convert",
        MODULES: "C=cntk np=numpy",
    },
    "cntk.ops": {
        "cntk": "INFINITELY_REPEAT SentinelValueForAutoSelectRandomSeed",
        "cntk.axis": "Axis",
        "cntk.compatibility.internals": "_input_spec",
        "cntk.default_options": "default_override_or get_default_override",
        "cntk.device": "use_default_device",
        "cntk.internal.sanitize": (
            "sanitize_axis sanitize_axis_list sanitize_convolution_args sanitize_dtype_cntk sanitize_dynamic_axes sanitize_input "
            "sanitize_multi_axis_reduction_list sanitize_permutation sanitize_pooling_args sanitize_shape"
        ),
        "cntk.internal.swig_helper": "typemap",
        "cntk.internal.utils": "get_data_type",
        "cntk.ops.functions": "BlockFunction CloneMethod load_model ModelFormat",
        "__future__": "division print_function",
        MODULES: "cntk_py=cntk.cntk_py np=numpy numbers",
    },
    "cntk.ops.functions": {
        "cntk.core": "Value",
        "cntk.device": "cpu DeviceDescriptor",
        "cntk.internal": "_serialize _UDFDeserializeCallbackWrapper _value_as_sequence_or_array",
        "cntk.internal.sanitize": (
            "_as_tuple is_byte_buffer sanitize_batch sanitize_dtype_cntk sanitize_Function_attributes sanitize_var_map "
            "sanitize_variable_value_dict sanitize_variables_or_functions"
        ),
        "cntk.internal.swig_helper": "map_if_possible typemap",
        "cntk.internal.utils": "_py_dict_to_cntk_dict _to_cntk_dict_value get_python_function_arguments map_function_arguments",
        "cntk.variables": "Record Variable",
        "enum": "Enum unique",
        MODULES: "cntk cntk_py=cntk.cntk_py collections path=os.path sys warnings",
    },
    "cntk.ops.sequence": {
        "cntk.axis": "Axis",
        "cntk.default_options": "default_override_or",
        "cntk.internal.sanitize": "sanitize_input",
        "cntk.internal.swig_helper": "typemap",
        "cntk.internal.utils": "get_data_type",
        MODULES: "np=numpy",
    },
    "cntk.random": {
        "cntk": "auto_select",
        "cntk.default_options": "default_override_or",
        "cntk.internal.sanitize": "sanitize_input sanitize_random_args",
        "cntk.internal.swig_helper": "typemap",
        "__future__": "division print_function",
        MODULES: "np=numpy",
    },
    "cntk.tensor": {
        "cntk.compatibility.internals": "AVAILABLE_TENSOR_OPS",
        MODULES: "sparse=scipy.sparse warnings",
    },
    "cntk.train": {
        "cntk.device": "use_default_device",
        "cntk.internal.sanitize": "sanitize_function sanitize_var_map",
        "cntk.internal.swig_helper": "typemap",
        "cntk.io": "MinibatchData",
        "enum": "Enum unique",
        MODULES: "cntk_py=cntk.cntk_py ctypes enum platform sys",
    },
    "cntk.train.distributed": {
        "cntk.internal.swig_helper": "typemap",
        MODULES: "cntk_py=cntk.cntk_py ctypes platform trainer=cntk.train.trainer",
    },
    "cntk.train.trainer": {
        "cntk.device": "use_default_device",
        "cntk.internal": "_value_as_sequence_or_array",
        "cntk.internal.sanitize": "sanitize_function sanitize_var_map",
        "cntk.internal.swig_helper": "typemap",
        "cntk.internal.utils": "_py_dict_to_cntk_dict",
        "cntk.io": "MinibatchData",
        MODULES: "cntk_py=cntk.cntk_py",
    },
    "cntk.train.training_session": {
        "cntk.compatibility.internals": "_unpack_parameter_frequency",
        "cntk.device": "use_default_device",
        "cntk.internal.sanitize": "_as_tuple sanitize_function sanitize_var_map",
        "cntk.internal.swig_helper": "typemap",
        "enum": "Enum unique",
        MODULES: "cntk_py=cntk.cntk_py enum sys",
    },
    "cntk.utils": {
        "cntk.internal.sanitize": (
            "sanitize_axis sanitize_axis_list sanitize_batch sanitize_dtype_cntk sanitize_dtype_numpy sanitize_dynamic_axes "
            "sanitize_function sanitize_input sanitize_precision sanitize_shape sanitize_value sanitize_var_map"
        ),
        "cntk.internal.swig_helper": "map_if_possible typemap",
        "cntk.internal.utils": (
            "_ones_like _py_dict_to_cntk_dict _to_cntk_dict_value eval get_data_type get_python_function_arguments map_function_arguments"
        ),
        "cntk.logging": "log_number_of_parameters ProgressPrinter",
        MODULES: "cntk_py=cntk.cntk_py np=numpy",
    },
    "cntk.variables": {
        "cntk.core": "NDArrayView",
        "cntk.default_options": "default_override_or get_default_override",
        "cntk.device": "DeviceDescriptor use_default_device",
        "cntk.internal.sanitize": "sanitize_dtype_cntk sanitize_dynamic_axes sanitize_precision sanitize_shape sanitize_value",
        "cntk.internal.swig_helper": "typemap",
        "cntk.tensor": "TensorOpsMixin",
        MODULES: "cntk_py=cntk.cntk_py np=numpy",
    },
}
