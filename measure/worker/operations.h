#pragma once

#include <memory>
#include <string>

#include "operation.h"
#include "session.h"

namespace tilecast::measure {

/// Makers of operations from a request; each throws Unsupported where the kit, the library or the
/// card can't do it. Sizes are named as in `tilecast kernel`: batch, m rows, n columns, k
/// reduction.

/// cuBLASLt: ops gemm, linear (weight [n,k], bias), matmul (batched). Fields trans_a, trans_b.
Operation make_matmul(Session& session, const Request& request);

/// The kit's own kernels: pointwise, rows, movement.
Operation make_own_kernel(Session& session, const Request& request);

/// cuDNN: conv_forward, conv_backward_data, conv_backward_weight; attention, attention_backward.
Operation make_cudnn(Session& session, const Request& request);
/// Empty where the kit was built without cuDNN.
std::string cudnn_version();
std::string cublaslt_version();

/// A fact of the device itself: bandwidth, launch costs. Fields: value, unit and the protocol.
Fields measure_device_fact(Session& session, const Request& request);

/// Throws Unsupported for an unknown op.
Operation make_operation(Session& session, const Request& request);

}  // namespace tilecast::measure
