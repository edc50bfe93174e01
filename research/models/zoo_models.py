"""The models of research/models/zoo.py: timm's by name, those of Transformers by the class of their config."""

# One or two of each family of timm 1.0, among them every kind of block: convolutions (grouped, depthwise, dilated), attention
# (windows, linear, pooled, cross-covariance), mixers, norms of all kinds.
TIMM = """
resnet18 resnet50 resnext50_32x4d wide_resnet50_2 seresnet50 ecaresnet50t resnetv2_50 resnet50d resnest50d skresnet50 res2net50_26w_4s
densenet121 vgg16 inception_v3 inception_v4 inception_resnet_v2 xception41 xception65 dpn68 dla34 dla60 hrnet_w18 selecsls42b
mobilenetv1_100 mobilenetv2_100 mobilenetv3_large_100 mobilenetv4_conv_small mobilenetv4_hybrid_medium mnasnet_100 fbnetc_100 hardcorenas_a
efficientnet_b0 tf_efficientnetv2_s efficientnet_lite0 mixnet_s ghostnet_100 ghostnetv2_100 tinynet_a lcnet_100 regnetx_008 regnety_008
regnetz_040 nfnet_f0 dm_nfnet_f0 eca_nfnet_l0 cspresnet50 cspdarknet53 darknet53 vovnet39a ese_vovnet19b_dw repvgg_a2 rexnet_100
repghostnet_100 mobileone_s0 gernet_s convnext_tiny convnextv2_tiny convmixer_768_32 focalnet_tiny_srf poolformer_s12 poolformerv2_s12
inception_next_tiny edgenext_small fastvit_t8 efficientformer_l1 efficientformerv2_s0 efficientvit_b0 efficientvit_m0 hgnet_tiny
hgnetv2_b0 starnet_s1 mambaout_tiny rdnet_tiny vit_tiny_patch16_224 vit_base_patch16_224 vit_base_patch16_clip_224 vit_small_patch14_dinov2
deit_small_distilled_patch16_224 deit3_small_patch16_224 beit_base_patch16_224 beitv2_base_patch16_224 eva02_tiny_patch14_224
cait_xxs24_224 crossvit_9_240 coat_tiny coatnet_0_rw_224 maxvit_tiny_rw_224 maxxvit_rmlp_small_rw_256 convit_tiny levit_128 visformer_tiny
swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 swin_s3_tiny_224 twins_pcpvt_small twins_svt_small pit_ti_224 pvt_v2_b0 mvitv2_tiny
xcit_nano_12_p16_224 volo_d1_224 davit_tiny gcvit_xxtiny nest_tiny_jx sequencer2d_s tnt_s_legacy_patch16_224 mixer_s16_224 gmlp_s16_224 resmlp_12_224
nextvit_small tiny_vit_5m_224 repvit_m1 shvit_s1 hiera_tiny_224 mobilevit_s mobilevitv2_050 samvit_base_patch16_224 vitamin_small_224
naflexvit_base_patch16_gap cs3darknet_m bat_resnext26ts botnet26t_256 halonet26t lambda_resnet26t lamhalobotnet50ts_256 eca_botnext26ts_256
""".split()

# (class of the model, fields of the config that keep it small or complete). Sizes are otherwise those of the default config.
FEW = {"num_hidden_layers": 2}
TRANSFORMERS = [
    ("BertForMaskedLM", {}), ("RobertaForMaskedLM", {}), ("XLMRobertaForMaskedLM", {}), ("DistilBertForMaskedLM", {}),
    ("AlbertForMaskedLM", {}), ("ElectraForMaskedLM", {}), ("MPNetForMaskedLM", {}), ("DebertaForMaskedLM", {}),
    ("DebertaV2ForMaskedLM", {}), ("ModernBertForMaskedLM", {}), ("FNetForMaskedLM", {}), ("SqueezeBertForMaskedLM", {}),
    ("MobileBertForMaskedLM", {}), ("FunnelForMaskedLM", {}), ("ConvBertForMaskedLM", {}), ("RoFormerForMaskedLM", {}),
    ("NystromformerForMaskedLM", {}), ("YosoForMaskedLM", {}), ("CanineForSequenceClassification", {}),
    ("GPT2LMHeadModel", {}), ("GPTNeoForCausalLM", {}), ("GPTNeoXForCausalLM", FEW), ("GPTJForCausalLM", {"n_layer": 2}),
    ("OPTForCausalLM", {}), ("BloomForCausalLM", {}), ("FalconForCausalLM", FEW), ("CodeGenForCausalLM", {"n_layer": 2}),
    ("LlamaForCausalLM", FEW), ("MistralForCausalLM", FEW), ("MixtralForCausalLM", FEW), ("Qwen2ForCausalLM", FEW),
    ("Qwen2MoeForCausalLM", FEW), ("Qwen3ForCausalLM", FEW), ("Qwen3MoeForCausalLM", FEW), ("GemmaForCausalLM", FEW),
    ("Gemma2ForCausalLM", FEW), ("Gemma3ForCausalLM", FEW), ("PhiForCausalLM", FEW), ("Phi3ForCausalLM", FEW),
    ("StableLmForCausalLM", FEW), ("Starcoder2ForCausalLM", FEW), ("CohereForCausalLM", FEW), ("OlmoForCausalLM", FEW),
    ("Olmo2ForCausalLM", FEW), ("GraniteForCausalLM", FEW), ("GlmForCausalLM", FEW), ("Glm4ForCausalLM", FEW), ("MptForCausalLM", FEW),
    ("MambaForCausalLM", FEW), ("Mamba2ForCausalLM", {"num_hidden_layers": 2, "num_heads": 128, "head_dim": 64}),
    ("T5ForConditionalGeneration", {}), ("MT5ForConditionalGeneration", {}), ("BartForConditionalGeneration", {}),
    ("MarianMTModel", {}), ("PegasusForConditionalGeneration", {"encoder_layers": 2, "decoder_layers": 2}),
    ("WhisperForConditionalGeneration", {}), ("Wav2Vec2ForCTC", {}), ("HubertForCTC", {}),
    ("ViTForImageClassification", {}), ("DeiTForImageClassification", {}), ("BeitForImageClassification", {}),
    ("SwinForImageClassification", {}), ("ConvNextForImageClassification", {}), ("ResNetForImageClassification", {}),
    ("RegNetForImageClassification", {}), ("MobileNetV2ForImageClassification", {}), ("MobileViTForImageClassification", {}),
    ("SegformerForImageClassification", {}), ("PoolFormerForImageClassification", {}), ("PvtForImageClassification", {}),
    ("LevitForImageClassification", {}), ("CvtForImageClassification", {}), ("DPTForDepthEstimation", {}),
    ("Dinov2ForImageClassification", {}), ("CLIPModel", {}), ("SiglipModel", {}),
]
