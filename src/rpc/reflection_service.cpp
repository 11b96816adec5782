// SPDX-License-Identifier: Apache-2.0
#include "rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>

namespace agbox {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// Protobuf needs time that grows with the square of a name's length to find that it is unknown.
constexpr std::size_t kLongestRequest = 4096;

const DescriptorPool& pool() {
  return *DescriptorPool::generated_pool();
}

void set_not_found(ReflectionService::Response& response, const std::string& what) {
  auto& error = *response.mutable_error_response();
  error.set_error_code(grpc::StatusCode::NOT_FOUND);
  error.set_error_message(what + " was not found");
}

// With everything that it imports: a client needs all of it to use the file.
void add_file(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
              grpc::reflection::v1::FileDescriptorResponse& files) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  files.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) add_file(*file.dependency(i), added, files);
}

void set_file(ReflectionService::Response& response, const FileDescriptor* file,
              const std::string& what) {
  if (file == nullptr) return set_not_found(response, what);
  std::set<const FileDescriptor*> added;
  add_file(*file, added, *response.mutable_file_descriptor_response());
}

const FileDescriptor* file_of_extension(const grpc::reflection::v1::ExtensionRequest& wanted) {
  const Descriptor* type = pool().FindMessageTypeByName(wanted.containing_type());
  if (type == nullptr) return nullptr;
  const FieldDescriptor* field = pool().FindExtensionByNumber(type, wanted.extension_number());
  return field == nullptr ? nullptr : field->file();
}

void set_extensions(ReflectionService::Response& response, const std::string& type_name) {
  const Descriptor* type = pool().FindMessageTypeByName(type_name);
  if (type == nullptr) return set_not_found(response, "type " + type_name);
  std::vector<const FieldDescriptor*> extensions;
  pool().FindAllExtensions(type, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(type_name);
  for (const FieldDescriptor* extension : extensions) {
    numbers.add_extension_number(extension->number());
  }
}

ReflectionService::Response answer(const ReflectionService::Request& request,
                                   const std::vector<std::string>& services) {
  using Asked = ReflectionService::Request::MessageRequestCase;
  ReflectionService::Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Asked::kFileByFilename:
      set_file(response, pool().FindFileByName(request.file_by_filename()),
               "file " + request.file_by_filename());
      break;
    case Asked::kFileContainingSymbol:
      set_file(response, pool().FindFileContainingSymbol(request.file_containing_symbol()),
               "symbol " + request.file_containing_symbol());
      break;
    case Asked::kFileContainingExtension:
      set_file(response, file_of_extension(request.file_containing_extension()), "extension");
      break;
    case Asked::kAllExtensionNumbersOfType:
      set_extensions(response, request.all_extension_numbers_of_type());
      break;
    case Asked::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(name);
      }
      break;
    case Asked::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("the request asks for nothing");
      break;
  }
  return response;
}

// Answers one request after the other; deletes itself at the end.
class ReflectionStream final
    : public grpc::ServerBidiReactor<ReflectionService::Request, ReflectionService::Response> {
 public:
  explicit ReflectionStream(const std::vector<std::string>& services) : services_(services) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (request_.ByteSizeLong() > kLongestRequest) {
      return Finish(
          {grpc::StatusCode::INVALID_ARGUMENT,
           "a request for reflection has at most " + std::to_string(kLongestRequest) + " bytes"});
    }
    response_ = answer(request_, services_);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  const std::vector<std::string>& services_;
  ReflectionService::Request request_;
  ReflectionService::Response response_;
};

}  // namespace

grpc::ServerBidiReactor<ReflectionService::Request, ReflectionService::Response>*
ReflectionService::ServerReflectionInfo(grpc::CallbackServerContext*) {
  return new ReflectionStream(services_);  // gRPC holds its address until OnDone()
}

}  // namespace agbox
