// SPDX-License-Identifier: Apache-2.0
#include "rpc/sandbox_service.h"

#include <google/protobuf/descriptor.h>

#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "model/exec/exec_request.h"
#include "model/reasons.h"
#include "model/spec/sandbox_spec.h"
#include "rpc/event_stream.h"
#include "rpc/output_stream.h"
#include "rpc/received.h"
#include "rpc/status.h"

namespace agbox {
namespace {

// Clients test for these names; a released name is never removed.
constexpr std::string_view kFeatures[] = {"diagnose",    "error-info", "exec",
                                          "exec-output", "health",     "isolation",
                                          "list-pages",  "reflection", "stop-resume"};

// Replies with an error, or with the response that `fill` makes of the value.
template <class Fill>
auto answer(grpc::ServerUnaryReactor* call, Fill fill) {
  return [call, fill](const auto& result) {
    if (!result) return call->Finish(to_status(result.error()));
    fill(result);
    call->Finish(grpc::Status::OK);
  };
}

auto answer_accepted(grpc::ServerUnaryReactor* call, v1::AcceptedResponse* response) {
  return answer(call, [response](const Result<>&) { response->set_accepted(true); });
}

const google::protobuf::MethodDescriptor& descriptor_of(const std::string& name) {
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      v1::SandboxService::service_full_name());
  const auto* method = service == nullptr ? nullptr : service->FindMethodByName(name);
  AGBOX_CHECK(method != nullptr, "a method that the contract has");
  return *method;
}

}  // namespace

template <class Message, class Response>
void SandboxService::accept(const std::string& name,
                            Call (SandboxService::*method)(Context, Request<Message>, Response*)) {
  const auto& descriptor = descriptor_of(name);
  auto handle = [this, method, type = descriptor.input_type()->name()](
                    Context context, const Received<Message>* request, Response* response) -> Call {
    if (request->is_valid) return (this->*method)(context, &request->message, response);
    auto* call = context->DefaultReactor();
    call->Finish(to_status({reason::kInvalidArgument, "the request is not a " + type}));
    return call;
  };
  // As the generated code does it, with another type of request.
  MarkMethodCallback(descriptor.index(),
                     new grpc::internal::CallbackUnaryHandler<Received<Message>, Response>(handle));
}

SandboxService::SandboxService(DaemonIdentity identity, ControlLoop& loop, ControlPlane& plane,
                               Logger log)
    : identity_(std::move(identity)), loop_(loop), plane_(plane), log_(std::move(log)) {
  accept("Ping", &SandboxService::Ping);
  accept("CreateSandbox", &SandboxService::CreateSandbox);
  accept("GetSandbox", &SandboxService::GetSandbox);
  accept("ListSandboxes", &SandboxService::ListSandboxes);
  accept("ResumeSandbox", &SandboxService::ResumeSandbox);
  accept("StopSandbox", &SandboxService::StopSandbox);
  accept("DeleteSandbox", &SandboxService::DeleteSandbox);
  accept("DeleteSandboxes", &SandboxService::DeleteSandboxes);
  accept("CreateExec", &SandboxService::CreateExec);
  accept("CancelExec", &SandboxService::CancelExec);
  accept("GetExec", &SandboxService::GetExec);
  accept("ListActiveExecs", &SandboxService::ListActiveExecs);
  accept("ListExecs", &SandboxService::ListExecs);
  accept("Diagnose", &SandboxService::Diagnose);
}

void SandboxService::end_streams() {
  const grpc::Status status =
      to_status({reason::kShuttingDown, "agboxd is shutting down; call again once it has started"});
  event_streams_->end_all(status);
  output_.post([streams = output_streams_, status] { streams->end_all(status); });
}

SandboxService::Call SandboxService::Ping(Context context, Request<v1::PingRequest>,
                                          v1::PingResponse* response) {
  response->set_version(identity_.version);
  response->set_daemon("agboxd");
  for (const std::string_view feature : kFeatures) response->add_features(std::string(feature));
  response->set_instance_id(identity_.instance_id);
  auto* call = context->DefaultReactor();
  loop_.post([this, call, response] {
    if (const auto& engine = plane_.engine()) response->set_engine(engine->title);
    const IsolationHealth isolation = plane_.isolation();
    response->set_isolation_shortcoming(isolation.shortcoming);
    response->set_isolation_repairs(isolation.repairs);
    response->set_isolation_last_repair(isolation.last_repair);
    call->Finish(grpc::Status::OK);
  });
  return call;
}

SandboxService::Call SandboxService::CreateSandbox(Context context,
                                                   Request<v1::CreateSandboxRequest> request,
                                                   v1::CreateSandboxResponse* response) {
  log_.debug("gRPC CreateSandbox", {{"image", request->create_spec().image()}});
  auto* call = context->DefaultReactor();
  auto spec = parse_create_request(*request);
  if (!spec) {
    call->Finish(to_status(spec.error()));
    return call;
  }
  auto reply = answer(call, [response](const Result<v1::SandboxHandle>& handle) {
    *response->mutable_sandbox() = *handle;
  });
  loop_.post([this, spec = std::move(*spec), id = request->sandbox_id(), reply]() mutable {
    plane_.directory().create(std::move(spec), std::move(id), reply);
  });
  return call;
}

SandboxService::Call SandboxService::GetSandbox(Context context,
                                                Request<v1::GetSandboxRequest> request,
                                                v1::GetSandboxResponse* response) {
  log_.debug("gRPC GetSandbox", {{"sandbox_id", request->sandbox_id()}});
  auto* call = context->DefaultReactor();
  auto reply = answer(call, [response](const Result<v1::SandboxHandle>& handle) {
    *response->mutable_sandbox() = *handle;
  });
  loop_.post([this, request, reply] { reply(plane_.directory().get(request->sandbox_id())); });
  return call;
}

SandboxService::Call SandboxService::ListSandboxes(Context context,
                                                   Request<v1::ListSandboxesRequest> request,
                                                   v1::ListSandboxesResponse* response) {
  log_.debug("gRPC ListSandboxes");
  auto* call = context->DefaultReactor();
  auto reply = answer(
      call, [response](const Result<v1::ListSandboxesResponse>& page) { *response = *page; });
  loop_.post([this, request, reply] { reply(plane_.directory().list(*request)); });
  return call;
}

SandboxService::Call SandboxService::ResumeSandbox(Context context,
                                                   Request<v1::ResumeSandboxRequest> request,
                                                   v1::AcceptedResponse* response) {
  log_.debug("gRPC ResumeSandbox", {{"sandbox_id", request->sandbox_id()}});
  auto* call = context->DefaultReactor();
  loop_.post([this, request, reply = answer_accepted(call, response)] {
    plane_.directory().resume(request->sandbox_id(), reply);
  });
  return call;
}

SandboxService::Call SandboxService::StopSandbox(Context context,
                                                 Request<v1::StopSandboxRequest> request,
                                                 v1::AcceptedResponse* response) {
  log_.debug("gRPC StopSandbox", {{"sandbox_id", request->sandbox_id()}});
  auto* call = context->DefaultReactor();
  loop_.post([this, request, reply = answer_accepted(call, response)] {
    plane_.directory().stop(request->sandbox_id(), reply);
  });
  return call;
}

SandboxService::Call SandboxService::DeleteSandbox(Context context,
                                                   Request<v1::DeleteSandboxRequest> request,
                                                   v1::AcceptedResponse* response) {
  log_.debug("gRPC DeleteSandbox", {{"sandbox_id", request->sandbox_id()}});
  auto* call = context->DefaultReactor();
  loop_.post([this, request, reply = answer_accepted(call, response)] {
    plane_.directory().remove(request->sandbox_id(), reply);
  });
  return call;
}

SandboxService::Call SandboxService::DeleteSandboxes(Context context,
                                                     Request<v1::DeleteSandboxesRequest> request,
                                                     v1::DeleteSandboxesResponse* response) {
  log_.debug("gRPC DeleteSandboxes");
  auto* call = context->DefaultReactor();
  auto reply = answer(call, [response](const Result<std::vector<std::string>>& ids) {
    response->mutable_deleted_sandbox_ids()->Assign(ids->begin(), ids->end());
    response->set_deleted_count(static_cast<std::uint32_t>(ids->size()));
  });
  loop_.post([this, request, reply] {
    plane_.directory().remove_matching(request->label_selector(), reply);
  });
  return call;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* SandboxService::SubscribeSandboxEvents(
    Context, Request<grpc::ByteBuffer> request) {
  log_.debug("gRPC SubscribeSandboxEvents");
  return EventStream::open(loop_, plane_.directory(), event_streams_, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* SandboxService::ReadExecOutput(
    Context, Request<grpc::ByteBuffer> request) {
  log_.debug("gRPC ReadExecOutput");
  auto find = [this](const std::string& exec_id, OnExecEnd on_end, const auto& reply) {
    plane_.directory().find_exec_output(exec_id, std::move(on_end), reply);
  };
  return OutputStream::open(loop_, output_, std::move(find), output_streams_, *request);
}

SandboxService::Call SandboxService::CreateExec(Context context,
                                                Request<v1::CreateExecRequest> request,
                                                v1::CreateExecResponse* response) {
  log_.debug("gRPC ExecInSandbox", {{"sandbox_id", request->sandbox_id()}});
  auto* call = context->DefaultReactor();
  auto reply = answer(
      call, [response](const Result<v1::CreateExecResponse>& created) { *response = *created; });
  loop_.post([this, request, parsed = parse_exec_request(*request), reply]() mutable {
    plane_.directory().create_exec(request->sandbox_id(), std::move(parsed), reply);
  });
  return call;
}

SandboxService::Call SandboxService::CancelExec(Context context,
                                                Request<v1::CancelExecRequest> request,
                                                v1::AcceptedResponse* response) {
  log_.debug("gRPC CancelExec", {{"exec_id", request->exec_id()}});
  auto* call = context->DefaultReactor();
  loop_.post([this, request, reply = answer_accepted(call, response)] {
    plane_.directory().cancel_exec(request->exec_id(), reply);
  });
  return call;
}

SandboxService::Call SandboxService::GetExec(Context context, Request<v1::GetExecRequest> request,
                                             v1::GetExecResponse* response) {
  log_.debug("gRPC GetExec", {{"exec_id", request->exec_id()}});
  auto* call = context->DefaultReactor();
  auto reply = answer(
      call, [response](const Result<v1::ExecStatus>& exec) { *response->mutable_exec() = *exec; });
  loop_.post([this, request, reply] { plane_.directory().get_exec(request->exec_id(), reply); });
  return call;
}

SandboxService::Call SandboxService::ListActiveExecs(Context context,
                                                     Request<v1::ListActiveExecsRequest> request,
                                                     v1::ListActiveExecsResponse* response) {
  log_.debug("gRPC ListActiveExecs");
  auto* call = context->DefaultReactor();
  loop_.post([this, call, request, response] {
    *response = plane_.directory().list_active_execs(*request);
    call->Finish(grpc::Status::OK);
  });
  return call;
}

SandboxService::Call SandboxService::ListExecs(Context context,
                                               Request<v1::ListExecsRequest> request,
                                               v1::ListExecsResponse* response) {
  log_.debug("gRPC ListExecs", {{"sandbox_id", request->sandbox_id()}});
  auto* call = context->DefaultReactor();
  auto reply =
      answer(call, [response](const Result<v1::ListExecsResponse>& page) { *response = *page; });
  loop_.post([this, request, reply] { plane_.directory().list_execs(*request, reply); });
  return call;
}

SandboxService::Call SandboxService::Diagnose(Context context, Request<v1::DiagnoseRequest> request,
                                              v1::DiagnoseResponse* response) {
  log_.debug("gRPC Diagnose");
  auto* call = context->DefaultReactor();
  auto images = parse_diagnose_request(*request);
  if (!images) {
    call->Finish(to_status(images.error()));
    return call;
  }
  auto reply = answer(
      call, [response](const Result<v1::DiagnoseResponse>& findings) { *response = *findings; });
  loop_.post([this, images = std::move(*images), reply]() mutable {
    plane_.diagnose(std::move(images), reply);
  });
  return call;
}

}  // namespace agbox
