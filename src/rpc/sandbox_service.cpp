// SPDX-License-Identifier: Apache-2.0
#include "rpc/sandbox_service.h"

#include <string_view>

#include "base/result.h"
#include "rpc/status.h"

namespace agbox {
namespace {

// Names that clients test for; a name stays once it was released.
constexpr std::string_view kFeatures[] = {"error-info", "health", "reflection"};

Error unimplemented(std::string_view method, const std::string& version) {
  return {Reason::Unimplemented,
          std::string(method) + " is not available in agboxd " + version,
          {{"method", std::string(method)}}};
}

// A stream that ends with an error before its first message.
class RefusedStream final : public grpc::ServerWriteReactor<v1::SandboxEvent> {
 public:
  explicit RefusedStream(const Error& error) { Finish(to_status(error)); }
  // Nobody else holds it: it neither writes nor waits for anything.
  void OnDone() override { delete this; }
};

}  // namespace

SandboxService::Call SandboxService::refuse(Context context, std::string_view method) const {
  auto* call = context->DefaultReactor();
  call->Finish(to_status(unimplemented(method, identity_.version)));
  return call;
}

SandboxService::Call SandboxService::Ping(Context context, Request<v1::PingRequest>,
                                          v1::PingResponse* response) {
  response->set_version(identity_.version);
  response->set_daemon("agboxd");
  for (const std::string_view feature : kFeatures) response->add_features(std::string(feature));
  response->set_instance_id(identity_.instance_id);
  auto* call = context->DefaultReactor();
  call->Finish(grpc::Status::OK);
  return call;
}

SandboxService::Call SandboxService::CreateSandbox(Context context,
                                                   Request<v1::CreateSandboxRequest>,
                                                   v1::CreateSandboxResponse*) {
  return refuse(context, "CreateSandbox");
}

SandboxService::Call SandboxService::GetSandbox(Context context, Request<v1::GetSandboxRequest>,
                                                v1::GetSandboxResponse*) {
  return refuse(context, "GetSandbox");
}

SandboxService::Call SandboxService::ListSandboxes(Context context,
                                                   Request<v1::ListSandboxesRequest>,
                                                   v1::ListSandboxesResponse*) {
  return refuse(context, "ListSandboxes");
}

SandboxService::Call SandboxService::ResumeSandbox(Context context,
                                                   Request<v1::ResumeSandboxRequest>,
                                                   v1::AcceptedResponse*) {
  return refuse(context, "ResumeSandbox");
}

SandboxService::Call SandboxService::StopSandbox(Context context, Request<v1::StopSandboxRequest>,
                                                 v1::AcceptedResponse*) {
  return refuse(context, "StopSandbox");
}

SandboxService::Call SandboxService::DeleteSandbox(Context context,
                                                   Request<v1::DeleteSandboxRequest>,
                                                   v1::AcceptedResponse*) {
  return refuse(context, "DeleteSandbox");
}

SandboxService::Call SandboxService::DeleteSandboxes(Context context,
                                                     Request<v1::DeleteSandboxesRequest>,
                                                     v1::DeleteSandboxesResponse*) {
  return refuse(context, "DeleteSandboxes");
}

grpc::ServerWriteReactor<v1::SandboxEvent>* SandboxService::SubscribeSandboxEvents(
    Context, Request<v1::SubscribeSandboxEventsRequest>) {
  return new RefusedStream(unimplemented("SubscribeSandboxEvents", identity_.version));
}

SandboxService::Call SandboxService::CreateExec(Context context, Request<v1::CreateExecRequest>,
                                                v1::CreateExecResponse*) {
  return refuse(context, "CreateExec");
}

SandboxService::Call SandboxService::CancelExec(Context context, Request<v1::CancelExecRequest>,
                                                v1::AcceptedResponse*) {
  return refuse(context, "CancelExec");
}

SandboxService::Call SandboxService::GetExec(Context context, Request<v1::GetExecRequest>,
                                             v1::GetExecResponse*) {
  return refuse(context, "GetExec");
}

SandboxService::Call SandboxService::ListActiveExecs(Context context,
                                                     Request<v1::ListActiveExecsRequest>,
                                                     v1::ListActiveExecsResponse*) {
  return refuse(context, "ListActiveExecs");
}

}  // namespace agbox
