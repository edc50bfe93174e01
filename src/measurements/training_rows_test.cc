#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "measurements/measurements.h"
#include "test_support.h"

namespace tilecast {
namespace {

MeasurementSet read_table(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder.path() / "runs.csv", text);
  return read_measurements(folder.path());
}

std::string option(const ModelMeasurement& m, const std::string& name) {
  for (const auto& [own, text] : m.options) {
    if (own == name) return text;
  }
  return "";
}

constexpr const char* kFsdpHeader =
    "gpu,gpus,model,d_model,n_heads,n_layers,vocab,seq,micro_batch,global_batch,precision,sharding,"
    "checkpointing,cpu_offload,step_s\n";

TEST(TrainingRows, FsdpRunsAreGpt2WithoutDropout) {
  const MeasurementSet set = read_table(
      std::string(kFsdpHeader) +
      "nvidia-a100-sxm4-40gb,16,1b,2048,16,24,50368,2048,4,64,amp_bf16,FULL_SHARD,1,0,1.5\n"
      "nvidia-a100-sxm4-40gb,16,1b,2048,16,24,50368,2048,4,64,amp_bf16,FULL_SHARD,0,1,1.5\n");
  ASSERT_EQ(set.models.size(), 1u);
  const ModelMeasurement& m = set.models[0];
  EXPECT_NE(m.config_text.find("\"n_embd\": 2048"), std::string::npos);
  EXPECT_EQ(option(m, "zero"), "3");
  EXPECT_EQ(option(m, "checkpointing"), "full");
  EXPECT_EQ(option(m, "cluster"), "dgx-a100-40gb");
  EXPECT_EQ(m.measured_s, 1.5);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("host's memory"), std::string::npos);
}

constexpr const char* kMegatronHeader =
    "gpu,gpus,task,hf_model,variant,dtype,scaling,global_batch,micro_batch,seq,fsdp,tp,pp,cp,vpp,"
    "ep,step_s,"
    "recipe_recompute,recipe_a2a_overlap,recipe_dispatcher\n";

TEST(TrainingRows, TunedRunsHaveTheirLayoutAndOverlaps) {
  const MeasurementSet set = read_table(
      std::string(kMegatronHeader) +
      "nvidia-h100-sxm5-80gb,256,pretraining,Qwen/"
      "Qwen3-235B-A22B,,fp8,current scaling,512,1,4096,,2,8,1,4,32,9,,1,alltoall\n"
      "nvidia-h100-sxm5-80gb,8,lora,meta-llama/Meta-Llama-3-70B,,bf16,,32,1,4096,,2,4,1,,1,9,,,\n"
      "nvidia-h100-sxm5-80gb,8,pretraining,a/b,,bf16,,32,1,4096,,2,4,1,,1,9,,,\n"
      "nvidia-h100-sxm5-80gb,16,pretraining,Qwen/Qwen3-30B-A3B,,fp8,mxfp8,32,1,4096,,1,1,1,,16,9,,,"
      "hybridep\n"
      "nvidia-h100-sxm5-80gb,8,pretraining,deepseek-ai/"
      "DeepSeek-V3,,bf16,,32,1,4096,,1,1,1,,8,9,,,\n"
      "nvidia-h100-sxm5-80gb,8,pretraining,openai/"
      "gpt-oss-120b,,bf16,,32,1,4096,,1,1,1,,8,9,shared_experts,,"
      "\n");
  ASSERT_EQ(set.models.size(), 3u);
  EXPECT_EQ(option(set.models[0], "dp"), "16");
  EXPECT_EQ(option(set.models[0], "ep"), "32");
  EXPECT_EQ(option(set.models[0], "expert-tensor-parallel-size"), "1");
  EXPECT_EQ(option(set.models[0], "overlap-moe-expert-parallel-comm"), "on");
  EXPECT_EQ(option(set.models[1], "tp-comm-overlap"), "on");
  EXPECT_EQ(option(set.models[0], "num-layers-per-virtual-pipeline-stage"), "3");
  EXPECT_EQ(option(set.models[0], "fp8-recipe"), "tensorwise");
  EXPECT_EQ(option(set.models[1], "lora-rank"), "32");
  EXPECT_EQ(option(set.models[1], "packed-sequence-length"), "256");
  EXPECT_EQ(option(set.models[0], "packed-sequence-length"), "");
  EXPECT_EQ(option(set.models[1], "lora-targets"), "q_proj,k_proj,v_proj");
  EXPECT_EQ(option(set.models[0], "moe-token-dispatcher-type"), "");
  EXPECT_EQ(option(set.models[2], "moe-token-dispatcher-type"), "flex");
  EXPECT_EQ(option(set.models[2], "fp8-recipe"), "mxfp8");
  EXPECT_EQ(set.unmatched.size(), 3u);
}

TEST(TrainingRows, DegreesAreCounts) {
  const std::string begin = std::string(kMegatronHeader) +
                            "nvidia-h100-sxm5-80gb,8,lora,meta-llama/Meta-Llama-3-70B,,bf16,,32,1,"
                            "4096,,";
  const MeasurementSet none = read_table(begin + "2,0,1,2,1,9,,,\n");
  EXPECT_TRUE(none.models.empty());
  ASSERT_EQ(none.unmatched.size(), 1u);
  EXPECT_NE(none.unmatched[0].find("a degree of parallelism is below 1"), std::string::npos);
  EXPECT_ERROR(read_table(begin + "9000000000000000,9000000000000000,1,2,1,9,,,\n"), kInput, "64");
}

TEST(TrainingRows, PeaksHaveTheSetUpOfTheirArguments) {
  const std::string header =
      "case,family,date,env,second_run,gpu,layers,seq,decoder_seq,tp,pp,cp,ep,etp,vpp,dp,"
      "chunk_layers,micro_batch,global_batch,precision,fp8,fp8_recipe,fp8_param_gather,optimizer,"
      "dist_optimizer,dist_optimizer_instances,fsdp,main_params,overlap_grad_reduce,"
      "sequence_parallel,recompute,recompute_modules,attention_backend,transformer_impl,"
      "cross_entropy_fusion,defer_embedding_wgrad,peak_allocated_bytes,step_s,config,args\n";
  const std::string end =
      ",nvidia-h100-sxm5-80gb,12,1024,,2,2,1,1,2,3,2,,4,32,bf16,,,0,adam,1,1,0,fp32,0,1,selective,"
      "moe_act,auto,transformer_engine,native,0,1000,,\"{\"\"model_type\"\":\"\"gpt2\"\"}\","
      "\"{\"\"make-vocab-size-divisible-by\"\":64}\"\n";
  const MeasurementSet set =
      read_table(header + "new,gpt,2026-01-01,lts,0" + end + "old,gpt,2025-01-01,lts,0" + end +
                 "again,gpt,2025-01-01,lts,1" + end);
  ASSERT_EQ(set.models.size(), 2u);
  const ModelMeasurement& m = set.models[0];
  EXPECT_EQ(m.peak_bytes, 1000);
  EXPECT_EQ(m.measured_s, 0);
  EXPECT_EQ(option(m, "attention"), "flash");
  EXPECT_EQ(option(set.models[1], "attention"), "eager");
  EXPECT_EQ(option(m, "num-layers-per-virtual-pipeline-stage"), "2");
  EXPECT_EQ(option(m, "recompute-modules"), "moe_act");
  EXPECT_EQ(option(m, "expert-tensor-parallel-size"), "") << "as tp";
  EXPECT_EQ(option(m, "cross-entropy"), "compiled");
  EXPECT_EQ(option(m, "make-vocab-size-divisible-by"), "64");
  EXPECT_EQ(option(m, "sequence-parallel"), "on");
  EXPECT_EQ(set.unmatched.size(), 1u);
}

}  // namespace
}  // namespace tilecast
