#include <gtest/gtest.h>

#include "schema/warning_table.h"
#include "tilecast/error.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

using Facts = std::vector<WarningFact>;

TEST(WarningText, ACodeIsAWordAndASentenceOfItsFacts) {
  EXPECT_EQ(warning_text({WarningCode::kDtypeReplaced, "nvidia-t4", 0,
                          Facts{{"requested", "bf16"}, {"used", "fp16"}}}),
            "nvidia-t4 does not support bf16: forecast in fp16 instead");
  EXPECT_EQ(warning_code_name(WarningCode::kDtypeReplaced), "dtype_replaced");
  EXPECT_EQ(warning_text({WarningCode::kDeviceFile, "mine", 0, Facts{{"message", "mine.json: x"}}}),
            "mine.json: x");
  EXPECT_EQ(warning_text({WarningCode::kIdleClients, "concurrency", 0,
                          Facts{{"clients", int64_t{9}}, {"requests", int64_t{4}}}}),
            "9 clients, but only 4 requests: the other clients send none");
}

TEST(WarningText, OfAStepItNamesTheStep) {
  const std::string pass = warning_text({WarningCode::kExtrapolated, "", 0.384, {}});
  EXPECT_EQ(pass.rfind("38 % of the time is extrapolated", 0), 0u) << pass;
  const std::string step = warning_text({WarningCode::kExtrapolated, "decode", 0.384, {}});
  EXPECT_EQ(step, "decode: " + pass);
  const Facts launched = {{"cuda_graphs", int64_t{0}}}, replayed = {{"cuda_graphs", int64_t{1}}};
  const std::string wait = "decode: the GPU waits for the host 50 % of the time";
  EXPECT_EQ(warning_text({WarningCode::kHostWait, "decode", 0.5, replayed}), wait);
  EXPECT_EQ(warning_text({WarningCode::kHostWait, "decode", 0.5, launched}),
            wait + "; CUDA graphs would help");
}

TEST(WarningText, AShortageSaysWhatIsKnownOfIt) {
  Warning warning{WarningCode::kDoesNotFit, "nvidia-t4", 0,
                  Facts{{"needed_bytes", int64_t{20} << 30},
                        {"usable_bytes", int64_t{16} << 30},
                        {"device_bytes", int64_t{16} << 30}}};
  const std::string plain =
      "does not fit: 4.00 GiB are missing; 20.0 GiB needed, programs see 16.0 GiB of nvidia-t4";
  EXPECT_EQ(warning_text(warning), plain);
  warning.facts.push_back({"largest_batch", int64_t{0}});
  EXPECT_EQ(warning_text(warning), plain + "; not even one sequence fits");
  Warning remedied = warning;
  remedied.facts.push_back({"ways_that_fit", std::string("--optimizer-impl fused")});
  EXPECT_EQ(warning_text(remedied),
            plain + "; not even one sequence fits; fits with --optimizer-impl fused");
  warning.facts.push_back({"ranks", int64_t{2}});
  EXPECT_NE(warning_text(warning).find("are missing on each GPU;"), std::string::npos);
  EXPECT_NE(warning_text(warning).find("; no number of ranks up to 64"), std::string::npos);
  warning.facts.push_back({"tp_that_fits", int64_t{4}});
  warning.facts.push_back({"kv_dtype_that_fits", std::string("fp8")});
  EXPECT_NE(warning_text(warning).find("; fits with --tp 4, or with --kv-dtype fp8"),
            std::string::npos);
  warning.facts.push_back({"kv_dtype_slower_share", 0.853});
  EXPECT_NE(warning_text(warning).find(", or with --kv-dtype fp8 (forecast 85 % slower)"),
            std::string::npos);
}

TEST(WarningText, EachCodeHasARowWhoseSentenceNamesItsFacts) {
  size_t index = 0;
  for (const WarningDef& def : warning_table()) {
    EXPECT_EQ(static_cast<size_t>(def.code), index++) << def.name;
    EXPECT_FALSE(def.doc.empty()) << def.name;
    EXPECT_NE(def.sentence.empty(), def.text == nullptr) << def.name;
    Warning warning{def.code, "it", 0.5, {}};
    for (const FactDef& fact : def.facts) {
      EXPECT_FALSE(fact.doc.empty()) << def.name << " " << fact.name;
      WarningFact value{std::string(fact.name), int64_t{1}};
      if (fact.kind == FactKind::kText) value.value = std::string("some text");
      if (fact.kind == FactKind::kNumber || fact.kind == FactKind::kSeconds) value.value = 1.5;
      warning.facts.push_back(std::move(value));
    }
    EXPECT_EQ(warning_text(warning).find('{'), std::string::npos) << warning_text(warning);
  }
  EXPECT_EQ(index, static_cast<size_t>(WarningCode::kNoEffect) + 1);
}

TEST(WarningText, AFactThatIsMissingOrUnknownIsAnInternalError) {
  const Facts none, wrong = {{"requested", std::string("bf16")}, {"used", int64_t{1}}};
  EXPECT_THROW(warning_text({WarningCode::kDtypeReplaced, "nvidia-t4", 0, none}), Error);
  EXPECT_THROW(warning_text({WarningCode::kDtypeReplaced, "nvidia-t4", 0, wrong}), Error);
  const Facts more = {{"clients", int64_t{9}}};
  EXPECT_THROW(warning_text({WarningCode::kLengthsIgnored, "trace", 0, more}), Error);
}

TEST(WarningText, TextsAndCodesAreInTheOrderOfTheWarnings) {
  const std::vector<Warning> warnings = {{WarningCode::kExtrapolated, "", 0.5, {}},
                                         {WarningCode::kLengthsIgnored, "trace", 0, {}}};
  EXPECT_EQ(warning_code_names(warnings),
            (std::vector<std::string>{"extrapolated", "lengths_ignored"}));
  EXPECT_EQ(warning_texts(warnings)[1],
            "--prompt and --output are not used: the trace has its own lengths");
}

}  // namespace
}  // namespace tilecast
