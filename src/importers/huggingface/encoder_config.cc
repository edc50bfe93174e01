// The table of encoders like BERT, and how each differs from it.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/encoder.h"
#include "importers/huggingface/fields.h"

namespace tilecast {
namespace {

/// Heads of a class named "…ForPreTraining".
enum class PreTraining : uint8_t { kPairs, kDiscriminator };

struct Family {
  std::string_view model_type, architecture, doc;
  bool pooler;                  ///< of the class without a head ("…Model")
  std::string_view pooler_act;  ///< also of the head of "…ForSequenceClassification"
  std::string_view head_act;    ///< of the vocabulary head; "": as the layers
  std::string_view default_class;
  /// Reads the fields of this family; null: as BERT's.
  void (*read)(const JsonObject&, EncoderConfig&) = nullptr;
  PreTraining pre_training = PreTraining::kPairs;
};

void read_norm_first(const JsonObject&, EncoderConfig& e) { e.norm_first = true; }

void read_without_embedding_norm(const JsonObject&, EncoderConfig& e) {
  e.norm_first = true;
  e.embedding_norm = false;
}

void read_embedding_size(const JsonObject& c, EncoderConfig& e) {
  e.embed_dim =
      c.optional_integer({"embedding_size"}, 1, kLargestConfigSize).value_or(e.hidden_dim);
}

void read_distilbert(const JsonObject&, EncoderConfig& e) { e.type_vocab_size = 0; }

void read_albert(const JsonObject& c, EncoderConfig& e) {
  e.embed_dim = c.integer({"embedding_size"}, 1, kLargestConfigSize);
  e.groups = c.optional_integer({"num_hidden_groups"}, 1, e.layers).value_or(1);
  // The graph lists the layers of all groups.
  constexpr int64_t kMostLayers = 1000;
  e.inner_layers = c.optional_integer({"inner_group_num"}, 1, kMostLayers).value_or(1);
  if (e.groups * e.inner_layers > kMostLayers)
    c.fail("num_hidden_groups",
           fmt::format("expected at most {} different layers, found {} groups of {} "
                       "('inner_group_num')",
                       kMostLayers, e.groups, e.inner_layers));
}

void read_mpnet(const JsonObject& c, EncoderConfig& e) {
  e.type_vocab_size = 0;
  e.bias_buckets =
      c.optional_integer({"relative_attention_num_buckets"}, 1, kLargestConfigSize).value_or(32);
}

/// `pos_att_type` is a list of words or a text that joins them with '|'.
bool has_position_type(const JsonObject& c, std::string_view type) {
  if (!c.has("pos_att_type")) return false;
  if (c.json()["pos_att_type"].is_array()) {
    const std::vector<std::string> types = c.strings("pos_att_type");
    return std::find(types.begin(), types.end(), type) != types.end();
  }
  return c.string("pos_att_type").find(type) != std::string::npos;
}

void read_deberta(const JsonObject& c, EncoderConfig& e) {
  e.type_vocab_size = c.optional_integer({"type_vocab_size"}, 0, kLargestConfigSize).value_or(0);
  e.position_table = c.boolean("position_biased_input", true);
  e.projection_bias = false;
  read_embedding_size(c, e);
  Disentangled d;
  if (c.boolean("relative_attention", false)) {
    const int64_t most =
        c.optional_integer({"max_relative_positions"}, -1, kLargestConfigSize).value_or(-1);
    const int64_t buckets =
        c.optional_integer({"position_buckets"}, -1, kLargestConfigSize).value_or(-1);
    d.span = buckets > 0 ? buckets : (most > 0 ? most : e.max_positions);
    d.content_to_position = has_position_type(c, "c2p");
    d.position_to_content = has_position_type(c, "p2c");
    d.shared_projections = c.boolean("share_att_key", false);
    d.norm = c.optional_string({"norm_rel_ebd"}).value_or("none").find("layer_norm") !=
             std::string::npos;
  }
  constexpr int64_t kWidestWindow = 1000;
  d.conv_window = c.optional_integer({"conv_kernel_size"}, 0, kWidestWindow).value_or(0);
  if (d.conv_window > 0 && d.conv_window % 2 == 0)
    c.fail("conv_kernel_size",
           fmt::format("expected an odd number, which keeps the length, found {}", d.conv_window));
  d.conv_groups = c.optional_integer({"conv_groups"}, 1, kLargestConfigSize).value_or(1);
  if (e.hidden_dim % d.conv_groups != 0)
    c.fail("conv_groups",
           fmt::format("{} groups do not divide the hidden size {}", d.conv_groups, e.hidden_dim));
  d.conv_activation = c.optional_string({"conv_act"}).value_or("tanh");
  check_activation(c, "conv_act", d.conv_activation);
  e.disentangled = d;
}

const Family kEncoderFamilies[] = {
    {"bert", "Bert", "BERT encoders", true, "tanh", "", "BertForPreTraining"},
    {"ernie", "Ernie", "ERNIE", true, "tanh", "", "ErnieForPreTraining"},
    {"megatron-bert", "MegatronBert", "Megatron's BERT", true, "tanh", "",
     "MegatronBertForPreTraining", read_without_embedding_norm},
    {"roberta", "Roberta", "RoBERTa", true, "tanh", "gelu", "RobertaForMaskedLM"},
    {"xlm-roberta", "XLMRoberta", "XLM-RoBERTa", true, "tanh", "gelu", "XLMRobertaForMaskedLM"},
    {"xlm-roberta-xl", "XLMRobertaXL", "XLM-RoBERTa XL", true, "tanh", "gelu",
     "XLMRobertaXLForMaskedLM", read_without_embedding_norm},
    {"roberta-prelayernorm", "RobertaPreLayerNorm", "RoBERTa with norms first", true, "tanh",
     "gelu", "RobertaPreLayerNormForMaskedLM", read_norm_first},
    {"camembert", "Camembert", "CamemBERT", true, "tanh", "gelu", "CamembertForMaskedLM"},
    {"data2vec-text", "Data2VecText", "data2vec for text", true, "tanh", "gelu",
     "Data2VecTextForMaskedLM"},
    {"distilbert", "DistilBert", "DistilBERT", false, "relu", "", "DistilBertForMaskedLM",
     read_distilbert},
    {"albert", "Albert", "ALBERT: layers share weights", true, "tanh", "", "AlbertForPreTraining",
     read_albert},
    {"electra", "Electra", "ELECTRA", false, "gelu", "gelu", "ElectraForPreTraining",
     read_embedding_size, PreTraining::kDiscriminator},
    {"mpnet", "MPNet", "MPNet: relative positions", true, "tanh", "gelu", "MPNetForMaskedLM",
     read_mpnet},
    {"deberta-v2", "DebertaV2", "DeBERTa V2 and V3: disentangled attention", false, "gelu", "",
     "DebertaV2ForMaskedLM", read_deberta}};

const Family& family_of(const JsonObject& c) {
  const std::string type = c.string("model_type");
  return *std::find_if(std::begin(kEncoderFamilies), std::end(kEncoderFamilies),
                       [&](const Family& f) { return f.model_type == type; });
}

/// The class named in the config decides which heads there are. Another class has the heads of the
/// class without a head.
void read_head(const JsonObject& c, const Family& family, EncoderConfig& e) {
  const std::string name = class_name(c, std::string(family.default_class));
  const std::string head =
      name.starts_with(family.architecture) ? name.substr(family.architecture.size()) : name;
  const bool pre_training = head == "ForPreTraining";
  const bool pairs = family.pre_training == PreTraining::kPairs &&
                     (pre_training || head == "ForNextSentencePrediction");
  const bool language = head == "LMHeadModel" || head == "ForMaskedLM";
  const bool classes = head == "ForSequenceClassification";
  const bool tokens = head == "ForTokenClassification" || head == "ForQuestionAnswering";
  const bool known = pre_training || pairs || language || classes || tokens || head == "Model";
  if (!known) e.other_class = name;
  e.discriminator = pre_training && family.pre_training == PreTraining::kDiscriminator;
  e.vocabulary_head = language || (pre_training && !e.discriminator);
  e.pooler = pairs || classes || (family.pooler && !language && !tokens);
  e.labels = pairs ? 2 : (classes ? label_count(c) : 0);
  if (tokens) e.token_labels = head == "ForQuestionAnswering" ? 2 : label_count(c);
  e.head_activation = family.head_act.empty() ? e.activation : std::string(family.head_act);
  e.pooler_activation = std::string(family.pooler_act);
}

}  // namespace

EncoderConfig read_encoder(const JsonObject& c) {
  const Family& family = family_of(c);
  const bool distil = family.model_type == "distilbert";  // which has names of its own
  EncoderConfig e;
  const std::string width = distil ? "dim" : "hidden_size";
  const std::string heads = distil ? "n_heads" : "num_attention_heads";
  const std::string act = distil ? "activation" : "hidden_act";
  e.hidden_dim = c.integer({width}, 1, kLargestConfigSize);
  e.heads = c.integer({heads}, 1, kLargestConfigSize);
  e.layers = c.integer({distil ? "n_layers" : "num_hidden_layers"}, 1, 100000);
  e.ffn_dim = c.integer({distil ? "hidden_dim" : "intermediate_size"}, 1, kLargestConfigSize);
  e.max_positions = c.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  // DeBERTa may have no table of token types.
  const int64_t fewest_types = family.model_type == "deberta-v2" ? 0 : 1;
  e.type_vocab_size =
      c.optional_integer({"type_vocab_size"}, fewest_types, kLargestConfigSize).value_or(2);
  e.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  e.activation = c.optional_string({act}).value_or("gelu");
  check_activation(c, act, e.activation);
  head_dim_of(c, width, e.hidden_dim, heads, e.heads);
  e.dropout = drops(c, distil ? "dropout" : "hidden_dropout_prob", 0.1);
  e.attention_dropout =
      drops(c, distil ? "attention_dropout" : "attention_probs_dropout_prob", 0.1);
  e.embed_dim = e.hidden_dim;
  if (family.read != nullptr) family.read(c, e);
  read_head(c, family, e);
  return e;
}

std::vector<FamilyDef> encoder_families() {
  std::vector<FamilyDef> families;
  for (const Family& f : kEncoderFamilies)
    families.push_back({f.model_type, f.architecture, f.doc, read_encoder_model});
  return families;
}

}  // namespace tilecast
