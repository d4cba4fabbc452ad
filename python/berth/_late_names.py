"""Names of TensorFlow's modules whose module here is imported when one of them is used first."""

# {module of TensorFlow: {module here: names}}
LATE = {
    "io": {
        "_io":
            "FixedLenFeature VarLenFeature RaggedFeature FixedLenSequenceFeature parse_example parse_single_example TFRecordOptions "
            "TFRecordWriter decode_csv gfile SparseFeature match_filenames_once write_file",
        "_tensor_proto": "serialize_tensor parse_tensor",
        "_sparse_files": "serialize_sparse serialize_many_sparse deserialize_many_sparse",
        "_sequence_example": "parse_single_sequence_example parse_sequence_example decode_json_example",
        "_pictures": "decode_bmp decode_gif encode_png",
        "_forms": "decode_raw",
        "_images": "decode_image decode_and_crop_jpeg",
        "_more": "encode_base64 decode_base64 decode_compressed matching_files is_jpeg",
        "_arguments": "decode_png encode_jpeg",
    },
    "image": {
        "_pictures": "decode_bmp decode_gif encode_png",
        "_images": "ResizeMethod extract_patches decode_image decode_and_crop_jpeg",
        "_images_more":
            "ssim ssim_multiscale draw_bounding_boxes extract_glimpse sample_distorted_bounding_box "
            "stateless_sample_distorted_bounding_box stateless_random_jpeg_quality",
        "_suppression":
            "non_max_suppression_with_scores non_max_suppression_overlaps combined_non_max_suppression non_max_suppression_padded",
        "_more": "total_variation psnr image_gradients is_jpeg",
        "_arguments": "decode_png encode_jpeg",
    },
    "strings": {
        "_unicode":
            "unicode_decode_with_offsets unicode_split_with_offsets unicode_transcode unicode_script unsorted_segment_join "
            "to_hash_bucket_strong",
        "_as_string": "as_string",
        "_more": "unicode_encode ngrams",
        "_arguments": "lower upper reduce_join substr",
    },
    "math": {
        "_forms": "bincount accumulate_n sign divide_no_nan",
        "_numeric": "top_k",
        "_special": "betainc igamma igammac unsorted_segment_sqrt_n",
        "_nn_more": "approx_max_k approx_min_k",
        "_sobol": "sobol_sample",
        "_more": "polyval confusion_matrix is_non_decreasing is_strictly_increasing lbeta",
        "_arguments": "count_nonzero",
    },
    "nn": {
        "_forms": "conv2d depthwise_conv2d max_pool2d relu6 leaky_relu",
        "_numeric":
            "convolution conv_transpose pool max_pool avg_pool ctc_loss ctc_greedy_decoder ctc_beam_search_decoder top_k",
        "_nn_more":
            "batch_normalization batch_norm_with_global_normalization lrn crelu weighted_moments sufficient_statistics "
            "normalize_moments collapse_repeated ctc_unique_labels isotonic_regression approx_max_k approx_min_k",
        "_samplers":
            "sampled_softmax_loss nce_loss compute_accidental_hits all_candidate_sampler fixed_unigram_candidate_sampler "
            "learned_unigram_candidate_sampler",
        "_sparse_embedding": "embedding_lookup_sparse safe_embedding_lookup_sparse",
        "_space_to_batch":
            "space_to_batch with_space_to_batch atrous_conv2d atrous_conv2d_transpose depthwise_conv2d_backprop_input "
            "depthwise_conv2d_backprop_filter dilation2d erosion2d fractional_max_pool fractional_avg_pool",
        "_arguments":
            "bias_add conv1d_transpose conv2d_transpose conv3d_transpose silu swish softmax_cross_entropy_with_logits moments embedding_lookup "
            "max_pool_with_argmax",
    },
    "linalg": {
        "_numeric": "svd qr lu",
        "_diagonals": "diag diag_part set_diag tensor_diag tensor_diag_part",
        "_matrix_functions":
            "normalize expm sqrtm logm tridiagonal_solve tridiagonal_matmul banded_triangular_solve eigh_tridiagonal",
        "_linear_operator": "LinearOperator",
        "_linear_operators":
            "LinearOperatorFullMatrix LinearOperatorDiag LinearOperatorScaledIdentity LinearOperatorIdentity LinearOperatorZeros "
            "LinearOperatorLowerTriangular",
        "_linear_patterns":
            "LinearOperatorHouseholder LinearOperatorPermutation LinearOperatorToeplitz LinearOperatorTridiag",
        "_linear_blocks": "LinearOperatorBlockLowerTriangular LinearOperatorBlockDiag",
        "_linear_operators_of":
            "LinearOperatorAdjoint LinearOperatorInversion LinearOperatorComposition LinearOperatorKronecker "
            "LinearOperatorLowRankUpdate",
        "_circulant": "LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D",
        "_arguments": "matvec matrix_transpose global_norm",
    },
    "signal": {
        "_numeric": "stft inverse_stft inverse_stft_window_fn",
        "_signal_more":
            "dct idct mdct inverse_mdct fftnd ifftnd rfftnd irfftnd rfft3d irfft3d linear_to_mel_weight_matrix "
            "mfccs_from_log_mel_spectrograms",
    },
    "random": {
        "_samplers":
            "log_uniform_candidate_sampler uniform_candidate_sampler all_candidate_sampler fixed_unigram_candidate_sampler "
            "learned_unigram_candidate_sampler",
    },
}
