#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

Evaluation evaluate_runs(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder.path() / "runs.csv", text);
  return evaluate(forecaster(), folder.path().string());
}

TEST(EvaluateTrainingRuns, StepsAreAskedAsTheirTableSays) {
  const Evaluation e = evaluate_runs(
      "gpu,gpus,model,d_model,n_heads,n_layers,vocab,seq,micro_batch,global_batch,precision,"
      "sharding,checkpointing,cpu_offload,step_s\n"
      "nvidia-a100-sxm4-80gb,8,tiny,256,4,2,512,128,2,16,amp_bf16,FULL_SHARD,0,0,0.01\n"
      "nvidia-a100-sxm4-80gb,8,tiny,256,4,2,512,128,3,16,amp_bf16,FULL_SHARD,0,0,0.01\n");
  ASSERT_EQ(e.models.size(), 1u);
  EXPECT_EQ(e.models[0].option, "fsdp");
  EXPECT_GT(e.models[0].forecast_s, 0);
  EXPECT_EQ(e.models[0].measured_s, 0.01);
  EXPECT_TRUE(e.peaks.empty());
  ASSERT_EQ(e.unmatched.size(), 1u) << "3 does not divide a rank's batch of 2";
  EXPECT_NE(e.unmatched[0].find("does not divide"), std::string::npos);
}

TEST(EvaluateTrainingRuns, APeakIsThatOfASetUpAndItsMedian) {
  const std::string header =
      "case,family,date,env,second_run,gpu,layers,seq,decoder_seq,tp,pp,cp,ep,etp,vpp,dp,"
      "chunk_layers,micro_batch,global_batch,precision,fp8,fp8_recipe,fp8_param_gather,optimizer,"
      "dist_optimizer,dist_optimizer_instances,fsdp,main_params,overlap_grad_reduce,"
      "sequence_parallel,recompute,recompute_modules,attention_backend,transformer_impl,"
      "cross_entropy_fusion,defer_embedding_wgrad,peak_allocated_bytes,step_s,config,args\n";
  const auto row = [](const std::string& name, int64_t peak) {
    return name +
           ",gpt,2026-01-01,dev,0,nvidia-h100-sxm5-80gb,2,128,,1,1,1,1,1,1,8,,2,16,bf16,,,0,"
           "adam,1,1,0,fp32,0,0,none,,flash,transformer_engine,,0," +
           std::to_string(peak) +
           ",,\"{\"\"model_type\"\":\"\"gpt2\"\",\"\"n_embd\"\":256,\"\"n_head\"\":4,"
           "\"\"n_layer\"\":2,\"\"vocab_size\"\":512,\"\"n_positions\"\":128}\",{}\n";
  };
  const Evaluation e =
      evaluate_runs(header + row("a", 200'000'000) + row("b", 100'000'000) + row("c", 110'000'000));
  EXPECT_TRUE(e.models.empty());
  ASSERT_EQ(e.peaks.size(), 1u);
  EXPECT_EQ(e.peaks[0].measured_bytes, 110'000'000);
  // Workspaces: two of cuBLAS and one of Transformer Engine, 32 MiB each.
  EXPECT_GT(e.peaks[0].forecast_bytes, 3 * (int64_t{32} << 20));
  EXPECT_LT(e.peaks[0].forecast_bytes, 4 * (int64_t{32} << 20));
  EXPECT_NE(evaluation_table(e, {}).find("Peaks of memory"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
