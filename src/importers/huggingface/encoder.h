#pragma once

// BERT and the encoders that differ from it in known parts. encoder_config.cc reads all of them,
// encoder.cc builds their graph; deberta.cc has the attention of DeBERTa.

#include <optional>
#include <string>
#include <vector>

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {

/// DeBERTa's attention (He et al. 2021): scores of contents to contents, and to relative positions.
struct Disentangled {
  int64_t span = 0;  ///< half of the number of relative positions; 0: contents only
  bool content_to_position = false, position_to_content = false;
  bool shared_projections = false;  ///< positions are projected by the weights of contents
  bool norm = false;                ///< of the table of relative positions
  int64_t conv_window = 0;          ///< a convolution beside the first layer; 0: none
  int64_t conv_groups = 1;
  std::string conv_activation;
};

struct EncoderConfig {
  int64_t hidden_dim = 0, heads = 0, layers = 0, ffn_dim = 0;
  int64_t vocab_size = 0, type_vocab_size = 0, max_positions = 0;
  int64_t embed_dim = 0;       ///< columns of the embedding tables
  bool position_table = true;  ///< absolute positions are added to the embeddings
  bool embedding_norm = true;
  bool projection_bias = true;  ///< of the projection from embed_dim to hidden_dim
  bool norm_first = false;      ///< norms before attention and MLP, and one after the last layer
  bool dropout = true, attention_dropout = true;
  std::string activation;
  int64_t groups = 0;        ///< ALBERT: groups of layers that share weights; 0: none share
  int64_t inner_layers = 1;  ///< ALBERT: layers in a group
  int64_t bias_buckets = 0;  ///< MPNet: T5's relative positions; 0: none
  std::optional<Disentangled> disentangled;

  // The part after the last layer.
  bool vocabulary_head = false;
  std::string head_activation;  ///< of the vocabulary head
  bool pooler = false;          ///< a linear layer on the first token of each sequence
  std::string pooler_activation;
  int64_t labels = 0;          ///< classes of the pooled token; 0: none
  int64_t token_labels = 0;    ///< classes of each token; 0: none
  std::string other_class;     ///< a class whose head is not known; "": it is known
  bool discriminator = false;  ///< ELECTRA: whether each token was replaced
};

/// A line for each family.
std::vector<FamilyDef> encoder_families();

/// Throws Error{kInput} that names a field that is missing or absurd.
EncoderConfig read_encoder(const JsonObject& config);

Model read_encoder_model(const JsonObject& config);

/// State that DeBERTa's layers share.
struct RelativePositions {
  TensorId table = -1;  ///< [1, 2 span, hidden_dim]
  TensorId index = -1;  ///< the relative position of each query-key pair, int64 [1, s, s]
  TensorId mask = -1;   ///< [b, 1, s, s]
};
RelativePositions relative_positions(Layers& f, const EncoderConfig& config);

/// DeBERTa's attention up to the output projection: [b, s, hidden_dim] → the same.
TensorId disentangled_attention(Layers& f, const EncoderConfig& config, TensorId x,
                                const RelativePositions& positions, const std::string& prefix);

/// The output of the first layer, and a convolution of the embeddings added to it.
TensorId conv_beside_layer(Layers& f, const EncoderConfig& config, TensorId embeddings,
                           TensorId output);

}  // namespace tilecast
