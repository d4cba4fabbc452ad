"""Names of TensorFlow and Keras that are not there yet; printed by names.py --planned."""

NAMES = """
keras.DTypePolicy keras.FloatDTypePolicy keras.Function keras.Initializer keras.InputSpec keras.Operation
keras.Quantizer keras.Regularizer keras.RematScope keras.StatelessScope keras.SymbolicScope keras.Variable
keras.activations.deserialize keras.activations.get keras.activations.serialize
keras.applications.ConvNeXtBase keras.applications.ConvNeXtLarge keras.applications.ConvNeXtSmall
keras.applications.ConvNeXtTiny keras.applications.ConvNeXtXLarge keras.applications.EfficientNetV2B0
keras.applications.EfficientNetV2B1 keras.applications.EfficientNetV2B2 keras.applications.EfficientNetV2B3
keras.applications.EfficientNetV2L keras.applications.EfficientNetV2M keras.applications.EfficientNetV2S
keras.applications.InceptionResNetV2 keras.applications.InceptionV3 keras.applications.MobileNetV3Large
keras.applications.MobileNetV3Small keras.applications.NASNetLarge keras.applications.NASNetMobile
keras.applications.convnext.ConvNeXtBase keras.applications.convnext.ConvNeXtLarge
keras.applications.convnext.ConvNeXtSmall keras.applications.convnext.ConvNeXtTiny
keras.applications.convnext.ConvNeXtXLarge keras.applications.convnext.decode_predictions
keras.applications.convnext.preprocess_input keras.applications.densenet.decode_predictions
keras.applications.efficientnet.EfficientNetB0 keras.applications.efficientnet.EfficientNetB1
keras.applications.efficientnet.EfficientNetB2 keras.applications.efficientnet.EfficientNetB3
keras.applications.efficientnet.EfficientNetB4 keras.applications.efficientnet.EfficientNetB5
keras.applications.efficientnet.EfficientNetB6 keras.applications.efficientnet.EfficientNetB7
keras.applications.efficientnet.decode_predictions keras.applications.efficientnet.preprocess_input
keras.applications.efficientnet_v2.EfficientNetV2B0 keras.applications.efficientnet_v2.EfficientNetV2B1
keras.applications.efficientnet_v2.EfficientNetV2B2 keras.applications.efficientnet_v2.EfficientNetV2B3
keras.applications.efficientnet_v2.EfficientNetV2L keras.applications.efficientnet_v2.EfficientNetV2M
keras.applications.efficientnet_v2.EfficientNetV2S keras.applications.efficientnet_v2.decode_predictions
keras.applications.efficientnet_v2.preprocess_input keras.applications.imagenet_utils.decode_predictions
keras.applications.imagenet_utils.preprocess_input keras.applications.inception_resnet_v2.InceptionResNetV2
keras.applications.inception_resnet_v2.decode_predictions
keras.applications.inception_resnet_v2.preprocess_input keras.applications.inception_v3.InceptionV3
keras.applications.inception_v3.decode_predictions keras.applications.inception_v3.preprocess_input
keras.applications.mobilenet.decode_predictions keras.applications.mobilenet_v2.decode_predictions
keras.applications.mobilenet_v3.decode_predictions keras.applications.mobilenet_v3.preprocess_input
keras.applications.nasnet.NASNetLarge keras.applications.nasnet.NASNetMobile
keras.applications.nasnet.decode_predictions keras.applications.nasnet.preprocess_input
keras.applications.resnet.decode_predictions keras.applications.resnet50.decode_predictions
keras.applications.resnet_v2.decode_predictions keras.applications.vgg16.decode_predictions
keras.applications.vgg19.decode_predictions keras.applications.xception.decode_predictions
keras.backend.backend keras.backend.clear_session keras.backend.epsilon keras.backend.floatx
keras.backend.get_uid keras.backend.image_data_format keras.backend.is_float_dtype keras.backend.is_int_dtype
keras.backend.is_keras_tensor keras.backend.result_type keras.backend.set_epsilon keras.backend.set_floatx
keras.backend.set_image_data_format keras.backend.standardize_dtype keras.callbacks.CallbackList
keras.callbacks.OrbaxCheckpoint keras.callbacks.RemoteMonitor keras.config.backend
keras.config.disable_flash_attention keras.config.disable_interactive_logging
keras.config.disable_traceback_filtering keras.config.dtype_policy keras.config.enable_flash_attention
keras.config.enable_interactive_logging keras.config.enable_traceback_filtering
keras.config.enable_unsafe_deserialization keras.config.epsilon keras.config.floatx
keras.config.image_data_format keras.config.is_flash_attention_enabled
keras.config.is_interactive_logging_enabled keras.config.is_nnx_enabled
keras.config.is_traceback_filtering_enabled keras.config.max_epochs keras.config.max_steps_per_epoch
keras.config.set_backend keras.config.set_dtype_policy keras.config.set_epsilon keras.config.set_floatx
keras.config.set_image_data_format keras.config.set_max_epochs keras.config.set_max_steps_per_epoch
keras.constraints.Constraint keras.constraints.deserialize keras.constraints.get keras.constraints.serialize
keras.datasets.boston_housing.load_data keras.datasets.imdb.get_word_index
keras.datasets.reuters.get_label_names keras.datasets.reuters.get_word_index keras.device
keras.distribution.DataParallel keras.distribution.DeviceMesh keras.distribution.LayoutMap
keras.distribution.ModelParallel keras.distribution.TensorLayout keras.distribution.distribute_tensor
keras.distribution.distribution keras.distribution.get_device_count keras.distribution.initialize
keras.distribution.list_devices keras.distribution.set_distribution keras.dtype_policies.AWQDTypePolicy
keras.dtype_policies.DTypePolicy keras.dtype_policies.DTypePolicyMap keras.dtype_policies.FloatDTypePolicy
keras.dtype_policies.GPTQDTypePolicy keras.dtype_policies.Int4DTypePolicy
keras.dtype_policies.QuantizedDTypePolicy keras.dtype_policies.QuantizedFloat8DTypePolicy
keras.dtype_policies.deserialize keras.dtype_policies.get keras.dtype_policies.serialize
keras.initializers.Initializer keras.initializers.STFT keras.initializers.STFTInitializer
keras.initializers.deserialize keras.initializers.get keras.initializers.serialize keras.initializers.stft
keras.layers.AugMix keras.layers.Bidirectional keras.layers.CategoryEncoding
keras.layers.ContrastLimitedAdaptiveHistogramEqualization keras.layers.Convolution1D
keras.layers.Convolution1DTranspose keras.layers.Convolution2D keras.layers.Convolution2DTranspose
keras.layers.Convolution3D keras.layers.Convolution3DTranspose keras.layers.CutMix keras.layers.Discretization
keras.layers.Equalization keras.layers.FlaxLayer keras.layers.GlobalAvgPool1D keras.layers.GlobalAvgPool3D
keras.layers.GlobalMaxPool1D keras.layers.GlobalMaxPool3D keras.layers.HashedCrossing keras.layers.Hashing
keras.layers.InputSpec keras.layers.IntegerLookup keras.layers.JaxLayer keras.layers.MaxNumBoundingBoxes
keras.layers.MelSpectrogram keras.layers.MixUp keras.layers.Pipeline keras.layers.RandAugment
keras.layers.RandomElasticTransform keras.layers.RandomPerspective keras.layers.STFTSpectrogram
keras.layers.SeparableConvolution1D keras.layers.SeparableConvolution2D keras.layers.StackedRNNCells
keras.layers.StringLookup keras.layers.TFSMLayer keras.layers.TextVectorization
keras.layers.TorchModuleWrapper keras.layers.Wrapper keras.layers.deserialize keras.layers.dot
keras.layers.minimum keras.layers.serialize keras.losses.CTC keras.losses.ctc keras.losses.deserialize
keras.losses.get keras.losses.serialize keras.metrics.MeanMetricWrapper keras.metrics.deserialize
keras.metrics.get keras.metrics.serialize keras.mixed_precision.DTypePolicy keras.mixed_precision.dtype_policy
keras.mixed_precision.set_dtype_policy keras.name_scope keras.ops.abs keras.ops.absolute
keras.ops.adaptive_average_pool keras.ops.adaptive_max_pool keras.ops.add keras.ops.all keras.ops.allclose
keras.ops.amax keras.ops.amin keras.ops.angle keras.ops.any keras.ops.append keras.ops.arange keras.ops.arccos
keras.ops.arccosh keras.ops.arcsin keras.ops.arcsinh keras.ops.arctan keras.ops.arctan2 keras.ops.arctanh
keras.ops.argmax keras.ops.argmin keras.ops.argpartition keras.ops.argsort keras.ops.array
keras.ops.array_split keras.ops.associative_scan keras.ops.average keras.ops.average_pool keras.ops.bartlett
keras.ops.batch_normalization keras.ops.binary_crossentropy keras.ops.bincount keras.ops.bitwise_and
keras.ops.bitwise_invert keras.ops.bitwise_left_shift keras.ops.bitwise_not keras.ops.bitwise_or
keras.ops.bitwise_right_shift keras.ops.bitwise_xor keras.ops.blackman keras.ops.broadcast_to keras.ops.cast
keras.ops.categorical_crossentropy keras.ops.cbrt keras.ops.cdist keras.ops.ceil keras.ops.celu
keras.ops.cholesky keras.ops.cholesky_inverse keras.ops.clip keras.ops.concatenate keras.ops.cond
keras.ops.conj keras.ops.conjugate keras.ops.conv keras.ops.conv_transpose keras.ops.convert_to_numpy
keras.ops.convert_to_tensor keras.ops.copy keras.ops.corrcoef keras.ops.correlate keras.ops.cos keras.ops.cosh
keras.ops.count_nonzero keras.ops.cross keras.ops.ctc_decode keras.ops.ctc_loss keras.ops.cumprod
keras.ops.cumsum keras.ops.custom_gradient keras.ops.deg2rad keras.ops.depth_to_space keras.ops.depthwise_conv
keras.ops.det keras.ops.diag keras.ops.diagflat keras.ops.diagonal keras.ops.diff keras.ops.digitize
keras.ops.divide keras.ops.divide_no_nan keras.ops.dot keras.ops.dot_product_attention keras.ops.dsplit
keras.ops.dstack keras.ops.dtype keras.ops.eig keras.ops.eigh keras.ops.einsum keras.ops.elu keras.ops.empty
keras.ops.empty_like keras.ops.equal keras.ops.erf keras.ops.erfc keras.ops.erfinv keras.ops.exp
keras.ops.exp2 keras.ops.expand_dims keras.ops.expm1 keras.ops.extract_sequences keras.ops.eye keras.ops.fabs
keras.ops.fft keras.ops.fft2 keras.ops.flip keras.ops.fliplr keras.ops.flipud keras.ops.floor
keras.ops.floor_divide keras.ops.fmax keras.ops.fmin keras.ops.fmod keras.ops.fold keras.ops.fori_loop
keras.ops.full keras.ops.full_like keras.ops.gcd keras.ops.gelu keras.ops.geomspace keras.ops.get_item
keras.ops.glu keras.ops.greater keras.ops.greater_equal keras.ops.hamming keras.ops.hanning
keras.ops.hard_shrink keras.ops.hard_sigmoid keras.ops.hard_silu keras.ops.hard_swish keras.ops.hard_tanh
keras.ops.heaviside keras.ops.histogram keras.ops.hsplit keras.ops.hstack keras.ops.hypot keras.ops.i0
keras.ops.identity keras.ops.ifft2 keras.ops.imag keras.ops.image.affine_transform keras.ops.image.crop_images
keras.ops.image.elastic_transform keras.ops.image.extract_patches keras.ops.image.extract_patches_3d
keras.ops.image.gaussian_blur keras.ops.image.hsv_to_rgb keras.ops.image.map_coordinates
keras.ops.image.pad_images keras.ops.image.perspective_transform keras.ops.image.resize
keras.ops.image.rgb_to_grayscale keras.ops.image.rgb_to_hsv keras.ops.image.scale_and_translate
keras.ops.image.sobel_edges keras.ops.image.ssim keras.ops.in_top_k keras.ops.inner keras.ops.inv
keras.ops.irfft keras.ops.is_tensor keras.ops.isclose keras.ops.isfinite keras.ops.isin keras.ops.isinf
keras.ops.isnan keras.ops.isneginf keras.ops.isposinf keras.ops.isreal keras.ops.istft keras.ops.jvp
keras.ops.kaiser keras.ops.kron keras.ops.layer_normalization keras.ops.lcm keras.ops.ldexp
keras.ops.leaky_relu keras.ops.left_shift keras.ops.less keras.ops.less_equal keras.ops.linalg.cholesky
keras.ops.linalg.cholesky_inverse keras.ops.linalg.det keras.ops.linalg.eig keras.ops.linalg.eigh
keras.ops.linalg.inv keras.ops.linalg.jvp keras.ops.linalg.lstsq keras.ops.linalg.lu_factor
keras.ops.linalg.matrix_rank keras.ops.linalg.norm keras.ops.linalg.pinv keras.ops.linalg.qr
keras.ops.linalg.solve keras.ops.linalg.solve_triangular keras.ops.linalg.svd keras.ops.linspace keras.ops.log
keras.ops.log10 keras.ops.log1p keras.ops.log2 keras.ops.log_sigmoid keras.ops.log_softmax keras.ops.logaddexp
keras.ops.logaddexp2 keras.ops.logdet keras.ops.logical_and keras.ops.logical_not keras.ops.logical_or
keras.ops.logical_xor keras.ops.logspace keras.ops.logsumexp keras.ops.lstsq keras.ops.lu_factor keras.ops.map
keras.ops.matmul keras.ops.matrix_rank keras.ops.max keras.ops.max_pool keras.ops.maximum keras.ops.mean
keras.ops.median keras.ops.meshgrid keras.ops.min keras.ops.minimum keras.ops.mod keras.ops.moments
keras.ops.moveaxis keras.ops.multi_hot keras.ops.multiply keras.ops.nan_to_num keras.ops.nanargmax
keras.ops.nanargmin keras.ops.nancumprod keras.ops.nancumsum keras.ops.nanmax keras.ops.nanmean
keras.ops.nanmedian keras.ops.nanmin keras.ops.nanpercentile keras.ops.nanprod keras.ops.nanquantile
keras.ops.nanstd keras.ops.nansum keras.ops.nanvar keras.ops.ndim keras.ops.negative keras.ops.nextafter
keras.ops.nn.adaptive_average_pool keras.ops.nn.adaptive_max_pool keras.ops.nn.average_pool
keras.ops.nn.batch_normalization keras.ops.nn.binary_crossentropy keras.ops.nn.categorical_crossentropy
keras.ops.nn.celu keras.ops.nn.conv keras.ops.nn.conv_transpose keras.ops.nn.ctc_decode keras.ops.nn.ctc_loss
keras.ops.nn.depth_to_space keras.ops.nn.depthwise_conv keras.ops.nn.dot_product_attention keras.ops.nn.elu
keras.ops.nn.fold keras.ops.nn.gelu keras.ops.nn.glu keras.ops.nn.hard_shrink keras.ops.nn.hard_sigmoid
keras.ops.nn.hard_silu keras.ops.nn.hard_swish keras.ops.nn.hard_tanh keras.ops.nn.layer_normalization
keras.ops.nn.leaky_relu keras.ops.nn.log_sigmoid keras.ops.nn.log_softmax keras.ops.nn.max_pool
keras.ops.nn.moments keras.ops.nn.multi_hot keras.ops.nn.normalize keras.ops.nn.one_hot keras.ops.nn.polar
keras.ops.nn.psnr keras.ops.nn.relu keras.ops.nn.relu6 keras.ops.nn.rms_normalization keras.ops.nn.selu
keras.ops.nn.separable_conv keras.ops.nn.sigmoid keras.ops.nn.silu keras.ops.nn.soft_shrink
keras.ops.nn.softmax keras.ops.nn.softplus keras.ops.nn.softsign keras.ops.nn.space_to_depth
keras.ops.nn.sparse_categorical_crossentropy keras.ops.nn.sparse_plus keras.ops.nn.sparse_sigmoid
keras.ops.nn.sparsemax keras.ops.nn.squareplus keras.ops.nn.swish keras.ops.nn.tanh_shrink
keras.ops.nn.threshold keras.ops.nn.unfold keras.ops.nonzero keras.ops.norm keras.ops.normalize
keras.ops.not_equal keras.ops.numpy.abs keras.ops.numpy.absolute keras.ops.numpy.add keras.ops.numpy.all
keras.ops.numpy.allclose keras.ops.numpy.amax keras.ops.numpy.amin keras.ops.numpy.angle keras.ops.numpy.any
keras.ops.numpy.append keras.ops.numpy.arange keras.ops.numpy.arccos keras.ops.numpy.arccosh
keras.ops.numpy.arcsin keras.ops.numpy.arcsinh keras.ops.numpy.arctan keras.ops.numpy.arctan2
keras.ops.numpy.arctanh keras.ops.numpy.argmax keras.ops.numpy.argmin keras.ops.numpy.argpartition
keras.ops.numpy.argsort keras.ops.numpy.array keras.ops.numpy.array_split keras.ops.numpy.average
keras.ops.numpy.bartlett keras.ops.numpy.bincount keras.ops.numpy.bitwise_and keras.ops.numpy.bitwise_invert
keras.ops.numpy.bitwise_left_shift keras.ops.numpy.bitwise_not keras.ops.numpy.bitwise_or
keras.ops.numpy.bitwise_right_shift keras.ops.numpy.bitwise_xor keras.ops.numpy.blackman
keras.ops.numpy.broadcast_to keras.ops.numpy.cbrt keras.ops.numpy.ceil keras.ops.numpy.clip
keras.ops.numpy.concatenate keras.ops.numpy.conj keras.ops.numpy.conjugate keras.ops.numpy.copy
keras.ops.numpy.corrcoef keras.ops.numpy.correlate keras.ops.numpy.cos keras.ops.numpy.cosh
keras.ops.numpy.count_nonzero keras.ops.numpy.cross keras.ops.numpy.cumprod keras.ops.numpy.cumsum
keras.ops.numpy.deg2rad keras.ops.numpy.diag keras.ops.numpy.diagflat keras.ops.numpy.diagonal
keras.ops.numpy.diff keras.ops.numpy.digitize keras.ops.numpy.divide keras.ops.numpy.divide_no_nan
keras.ops.numpy.dot keras.ops.numpy.dsplit keras.ops.numpy.dstack keras.ops.numpy.einsum keras.ops.numpy.empty
keras.ops.numpy.empty_like keras.ops.numpy.equal keras.ops.numpy.exp keras.ops.numpy.exp2
keras.ops.numpy.expand_dims keras.ops.numpy.expm1 keras.ops.numpy.eye keras.ops.numpy.fabs
keras.ops.numpy.flip keras.ops.numpy.fliplr keras.ops.numpy.flipud keras.ops.numpy.floor
keras.ops.numpy.floor_divide keras.ops.numpy.fmax keras.ops.numpy.fmin keras.ops.numpy.fmod
keras.ops.numpy.full keras.ops.numpy.full_like keras.ops.numpy.gcd keras.ops.numpy.geomspace
keras.ops.numpy.get_item keras.ops.numpy.greater keras.ops.numpy.greater_equal keras.ops.numpy.hamming
keras.ops.numpy.hanning keras.ops.numpy.heaviside keras.ops.numpy.histogram keras.ops.numpy.hsplit
keras.ops.numpy.hstack keras.ops.numpy.hypot keras.ops.numpy.i0 keras.ops.numpy.identity keras.ops.numpy.imag
keras.ops.numpy.inner keras.ops.numpy.isclose keras.ops.numpy.isfinite keras.ops.numpy.isin
keras.ops.numpy.isinf keras.ops.numpy.isnan keras.ops.numpy.isneginf keras.ops.numpy.isposinf
keras.ops.numpy.isreal keras.ops.numpy.kaiser keras.ops.numpy.kron keras.ops.numpy.lcm keras.ops.numpy.ldexp
keras.ops.numpy.left_shift keras.ops.numpy.less keras.ops.numpy.less_equal keras.ops.numpy.linspace
keras.ops.numpy.log keras.ops.numpy.log10 keras.ops.numpy.log1p keras.ops.numpy.log2 keras.ops.numpy.logaddexp
keras.ops.numpy.logaddexp2 keras.ops.numpy.logical_and keras.ops.numpy.logical_not keras.ops.numpy.logical_or
keras.ops.numpy.logical_xor keras.ops.numpy.logspace keras.ops.numpy.matmul keras.ops.numpy.max
keras.ops.numpy.maximum keras.ops.numpy.mean keras.ops.numpy.median keras.ops.numpy.meshgrid
keras.ops.numpy.min keras.ops.numpy.minimum keras.ops.numpy.mod keras.ops.numpy.moveaxis
keras.ops.numpy.multiply keras.ops.numpy.nan_to_num keras.ops.numpy.nanargmax keras.ops.numpy.nanargmin
keras.ops.numpy.nancumprod keras.ops.numpy.nancumsum keras.ops.numpy.nanmax keras.ops.numpy.nanmean
keras.ops.numpy.nanmedian keras.ops.numpy.nanmin keras.ops.numpy.nanpercentile keras.ops.numpy.nanprod
keras.ops.numpy.nanquantile keras.ops.numpy.nanstd keras.ops.numpy.nansum keras.ops.numpy.nanvar
keras.ops.numpy.ndim keras.ops.numpy.negative keras.ops.numpy.nextafter keras.ops.numpy.nonzero
keras.ops.numpy.not_equal keras.ops.numpy.ones keras.ops.numpy.ones_like keras.ops.numpy.outer
keras.ops.numpy.pad keras.ops.numpy.percentile keras.ops.numpy.power keras.ops.numpy.prod keras.ops.numpy.ptp
keras.ops.numpy.quantile keras.ops.numpy.rad2deg keras.ops.numpy.ravel keras.ops.numpy.real
keras.ops.numpy.reciprocal keras.ops.numpy.repeat keras.ops.numpy.reshape keras.ops.numpy.right_shift
keras.ops.numpy.roll keras.ops.numpy.rot90 keras.ops.numpy.round keras.ops.numpy.searchsorted
keras.ops.numpy.select keras.ops.numpy.sign keras.ops.numpy.signbit keras.ops.numpy.sin keras.ops.numpy.sinc
keras.ops.numpy.sinh keras.ops.numpy.size keras.ops.numpy.slogdet keras.ops.numpy.sort keras.ops.numpy.split
keras.ops.numpy.sqrt keras.ops.numpy.square keras.ops.numpy.squeeze keras.ops.numpy.stack keras.ops.numpy.std
keras.ops.numpy.subtract keras.ops.numpy.sum keras.ops.numpy.swapaxes keras.ops.numpy.take
keras.ops.numpy.take_along_axis keras.ops.numpy.tan keras.ops.numpy.tanh keras.ops.numpy.tensordot
keras.ops.numpy.tile keras.ops.numpy.trace keras.ops.numpy.transpose keras.ops.numpy.trapezoid
keras.ops.numpy.tri keras.ops.numpy.tril keras.ops.numpy.triu keras.ops.numpy.true_divide
keras.ops.numpy.trunc keras.ops.numpy.unique keras.ops.numpy.unravel_index keras.ops.numpy.vander
keras.ops.numpy.var keras.ops.numpy.vdot keras.ops.numpy.vectorize keras.ops.numpy.view keras.ops.numpy.vsplit
keras.ops.numpy.vstack keras.ops.numpy.where keras.ops.numpy.zeros keras.ops.numpy.zeros_like
keras.ops.one_hot keras.ops.ones keras.ops.ones_like keras.ops.outer keras.ops.pad keras.ops.percentile
keras.ops.pinv keras.ops.polar keras.ops.power keras.ops.prod keras.ops.psnr keras.ops.ptp keras.ops.qr
keras.ops.quantile keras.ops.rad2deg keras.ops.ravel keras.ops.real keras.ops.rearrange keras.ops.reciprocal
keras.ops.relu keras.ops.relu6 keras.ops.repeat keras.ops.reshape keras.ops.rfft keras.ops.right_shift
keras.ops.rms_normalization keras.ops.roll keras.ops.rot90 keras.ops.round keras.ops.rsqrt
keras.ops.saturate_cast keras.ops.scan keras.ops.scatter keras.ops.scatter_update keras.ops.searchsorted
keras.ops.segment_max keras.ops.segment_min keras.ops.segment_prod keras.ops.segment_sum keras.ops.select
keras.ops.selu keras.ops.separable_conv keras.ops.shape keras.ops.sigmoid keras.ops.sign keras.ops.signbit
keras.ops.silu keras.ops.sin keras.ops.sinc keras.ops.sinh keras.ops.size keras.ops.slice
keras.ops.slice_update keras.ops.slogdet keras.ops.soft_shrink keras.ops.softmax keras.ops.softplus
keras.ops.softsign keras.ops.solve keras.ops.solve_triangular keras.ops.sort keras.ops.space_to_depth
keras.ops.sparse_categorical_crossentropy keras.ops.sparse_plus keras.ops.sparse_sigmoid keras.ops.sparsemax
keras.ops.split keras.ops.sqrt keras.ops.square keras.ops.squareplus keras.ops.squeeze keras.ops.stack
keras.ops.std keras.ops.stft keras.ops.stop_gradient keras.ops.subtract keras.ops.sum keras.ops.svd
keras.ops.swapaxes keras.ops.swish keras.ops.switch keras.ops.take keras.ops.take_along_axis keras.ops.tan
keras.ops.tanh keras.ops.tanh_shrink keras.ops.tensordot keras.ops.threshold keras.ops.tile keras.ops.top_k
keras.ops.trace keras.ops.transpose keras.ops.trapezoid keras.ops.tri keras.ops.tril keras.ops.triu
keras.ops.true_divide keras.ops.trunc keras.ops.unfold keras.ops.unique keras.ops.unravel_index
keras.ops.unstack keras.ops.vander keras.ops.var keras.ops.vdot keras.ops.vectorize keras.ops.vectorized_map
keras.ops.view keras.ops.view_as_complex keras.ops.view_as_real keras.ops.vsplit keras.ops.vstack
keras.ops.where keras.ops.while_loop keras.ops.zeros keras.ops.zeros_like keras.optimizers.MultiOptimizer
keras.optimizers.Muon keras.optimizers.Optimizer keras.optimizers.OptimizerMap
keras.optimizers.ScheduleFreeAdamW keras.optimizers.deserialize keras.optimizers.get
keras.optimizers.schedules.LearningRateSchedule keras.optimizers.schedules.deserialize
keras.optimizers.schedules.serialize keras.optimizers.serialize keras.preprocessing.image.smart_resize
keras.preprocessing.timeseries_dataset_from_array keras.random.SeedGenerator keras.random.beta
keras.random.binomial keras.random.categorical keras.random.dropout keras.random.gamma keras.random.normal
keras.random.randint keras.random.shuffle keras.random.truncated_normal keras.random.uniform
keras.regularizers.Regularizer keras.regularizers.deserialize keras.regularizers.get
keras.regularizers.serialize keras.remat keras.saving.KerasFileEditor keras.utils.Config
keras.utils.FeatureSpace keras.utils.Progbar keras.utils.PyDataset keras.utils.Sequence
keras.utils.audio_dataset_from_directory keras.utils.bounding_boxes.affine_transform
keras.utils.bounding_boxes.clip_to_image_size keras.utils.bounding_boxes.compute_ciou
keras.utils.bounding_boxes.compute_iou keras.utils.bounding_boxes.convert_format
keras.utils.bounding_boxes.crop keras.utils.bounding_boxes.decode_deltas_to_boxes
keras.utils.bounding_boxes.encode_box_to_deltas keras.utils.bounding_boxes.pad keras.utils.clear_session
keras.utils.disable_interactive_logging keras.utils.enable_interactive_logging keras.utils.get_source_inputs
keras.utils.is_interactive_logging_enabled keras.utils.is_keras_tensor keras.utils.model_to_dot
keras.utils.normalize keras.utils.plot_model keras.utils.split_dataset keras.utils.standardize_dtype
keras.utils.timeseries_dataset_from_array keras.version keras.visualization.draw_bounding_boxes
keras.visualization.draw_segmentation_masks keras.visualization.plot_bounding_box_gallery
keras.visualization.plot_image_gallery keras.visualization.plot_segmentation_mask_gallery
keras.wrappers.SKLearnClassifier keras.wrappers.SKLearnRegressor keras.wrappers.SKLearnTransformer
tf.check_pinned tf.conv tf.conv2d_backprop_filter_v2 tf.conv2d_backprop_input_v2
tf.image.generate_bounding_box_proposals tf.initializers.Initializer tf.initializers.STFT
tf.initializers.STFTInitializer tf.initializers.deserialize tf.initializers.get tf.initializers.serialize
tf.initializers.stft tf.load_library tf.losses.CTC tf.losses.ctc tf.losses.deserialize tf.losses.get
tf.losses.kullback_leibler_divergence tf.losses.logcosh tf.losses.serialize tf.metrics.MeanMetricWrapper
tf.metrics.deserialize tf.metrics.get tf.metrics.kullback_leibler_divergence tf.metrics.logcosh
tf.metrics.serialize tf.nn.RNNCellDeviceWrapper tf.nn.RNNCellDropoutWrapper tf.nn.RNNCellResidualWrapper
tf.optimizers.MultiOptimizer tf.optimizers.Muon tf.optimizers.Optimizer tf.optimizers.OptimizerMap
tf.optimizers.ScheduleFreeAdamW tf.optimizers.deserialize tf.optimizers.get
tf.optimizers.schedules.LearningRateSchedule tf.optimizers.schedules.deserialize
tf.optimizers.schedules.serialize tf.optimizers.serialize tf.ragged_fill_empty_rows
tf.ragged_fill_empty_rows_grad tf.random_index_shuffle tf.train.experimental.MaxShardSizePolicy
tf.train.experimental.ShardByTaskPolicy tf.train.experimental.ShardableTensor
tf.train.experimental.ShardingCallback
""".split()
