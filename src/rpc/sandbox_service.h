// SPDX-License-Identifier: Apache-2.0
// The calls of agbox.v1.SandboxService. A method parses, posts and replies, without logic of its
// own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"
#include "base/log.h"
#include "control/control_loop.h"
#include "control/control_plane.h"
#include "execlog/output_loop.h"
#include "rpc/open_streams.h"

namespace agbox {

// What Ping returns about this daemon.
struct DaemonIdentity {
  std::string version;
  std::string instance_id;
};

// Raw methods, because events are sent as the stored bytes and output as the bytes read.
using ServiceBase = v1::SandboxService::WithRawCallbackMethod_SubscribeSandboxEvents<
    v1::SandboxService::WithRawCallbackMethod_ReadExecOutput<v1::SandboxService::CallbackService>>;

class SandboxService final : public ServiceBase {
 public:
  SandboxService(DaemonIdentity identity, ControlLoop& loop, ControlPlane& plane, Logger log);

  // Ends all streams with SHUTTING_DOWN, also those that begin later. On the control thread.
  void end_streams();

  template <class Message>
  using Request = const Message*;
  using Call = grpc::ServerUnaryReactor*;
  using Context = grpc::CallbackServerContext*;

  Call Ping(Context context, Request<v1::PingRequest> request, v1::PingResponse* response) override;
  Call CreateSandbox(Context context, Request<v1::CreateSandboxRequest> request,
                     v1::CreateSandboxResponse* response) override;
  Call GetSandbox(Context context, Request<v1::GetSandboxRequest> request,
                  v1::GetSandboxResponse* response) override;
  Call ListSandboxes(Context context, Request<v1::ListSandboxesRequest> request,
                     v1::ListSandboxesResponse* response) override;
  Call ResumeSandbox(Context context, Request<v1::ResumeSandboxRequest> request,
                     v1::AcceptedResponse* response) override;
  Call StopSandbox(Context context, Request<v1::StopSandboxRequest> request,
                   v1::AcceptedResponse* response) override;
  Call DeleteSandbox(Context context, Request<v1::DeleteSandboxRequest> request,
                     v1::AcceptedResponse* response) override;
  Call DeleteSandboxes(Context context, Request<v1::DeleteSandboxesRequest> request,
                       v1::DeleteSandboxesResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* SubscribeSandboxEvents(
      Context context, Request<grpc::ByteBuffer> request) override;
  Call CreateExec(Context context, Request<v1::CreateExecRequest> request,
                  v1::CreateExecResponse* response) override;
  Call CancelExec(Context context, Request<v1::CancelExecRequest> request,
                  v1::AcceptedResponse* response) override;
  Call GetExec(Context context, Request<v1::GetExecRequest> request,
               v1::GetExecResponse* response) override;
  Call ListActiveExecs(Context context, Request<v1::ListActiveExecsRequest> request,
                       v1::ListActiveExecsResponse* response) override;
  Call ListExecs(Context context, Request<v1::ListExecsRequest> request,
                 v1::ListExecsResponse* response) override;
  Call Diagnose(Context context, Request<v1::DiagnoseRequest> request,
                v1::DiagnoseResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadExecOutput(
      Context context, Request<grpc::ByteBuffer> request) override;

 private:
  // Answers requests that cannot be parsed with INVALID_ARGUMENT, and passes on all others.
  template <class Message, class Response>
  void accept(const std::string& name,
              Call (SandboxService::*method)(Context, Request<Message>, Response*));

  DaemonIdentity identity_;
  ControlLoop& loop_;
  ControlPlane& plane_;
  Logger log_;
  std::shared_ptr<OpenStreams> event_streams_ = std::make_shared<OpenStreams>();
  std::shared_ptr<OpenStreams> output_streams_ = std::make_shared<OpenStreams>();
  OutputLoop output_;
};

}  // namespace agbox
