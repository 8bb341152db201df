// The functions of the CUDA driver, as libcuda.so.1 exports them. No macro renames a call here, so the newest
// ABI of an allocation is spelled cuMemAlloc_v2, and the bare name is that of CUDA 3 with 32-bit pointers.
// _ptds and _ptsz are the variants that use each thread's own default stream instead of the legacy one.
// Texture and surface references, tensor maps, core dumps and checkpoints are left out. Source: NVIDIA's
// cuda.h of CUDA 13.5, a superset of 13.0, 12.9 and 11.8 (cuda_exports.txt lists the first version of each
// function).
#pragma once

#include "abi/cuda_types.h"

extern "C" {

// Initialisation, versions, errors, entry points by name.
CUresult cuDriverGetVersion(int* driver_version);
CUresult cuGetErrorName(CUresult error, const char** p_str);
CUresult cuGetErrorString(CUresult error, const char** p_str);
CUresult cuGetExportTable(const void** pp_export_table, const CUuuid* p_export_table_id);
CUresult cuGetProcAddress(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbol_status);
CUresult cuInit(unsigned int flags);

// Devices.
CUresult cuDeviceCanAccessPeer(int* can_access_peer, CUdevice device, CUdevice peer_dev);
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* pci_bus_id);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType type, CUdevice device);
CUresult cuDeviceGetHostAtomicCapabilities(unsigned int* capabilities, const CUatomicOperation* operations,
                                           unsigned int count, CUdevice device);
CUresult cuDeviceGetLuid(char* luid, unsigned int* device_node_mask, CUdevice device);
CUresult cuDeviceGetName(char* name, int len, CUdevice device);
CUresult cuDeviceGetNvSciSyncAttributes(void* nv_sci_sync_attr_list, CUdevice device, int flags);
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int* capabilities, const CUatomicOperation* operations,
                                          unsigned int count, CUdevice src_device, CUdevice dst_device);
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice src_device,
                                 CUdevice dst_device);
CUresult cuDeviceGetPCIBusId(char* pci_bus_id, int len, CUdevice device);
CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice device);
CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* max_width_in_elements, CUarray_format format,
                                            unsigned int num_channels, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callback_func, void* user_data,
                                           CUasyncCallbackHandle* callback);
CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);
CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback);

// Primary contexts.
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);

// Contexts.
CUresult cuCtxAttach(CUcontext* context, unsigned int flags);
CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params_array, int num_params,
                        unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* ctx_create_params, unsigned int flags,
                        CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxDetach(CUcontext context);
CUresult cuCtxDisablePeerAccess(CUcontext peer_context);
CUresult cuCtxEnablePeerAccess(CUcontext peer_context, unsigned int flags);
CUresult cuCtxFromGreenCtx(CUcontext* p_context, CUgreenCtx h_ctx);
CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version);
CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxGetDevResource(CUcontext h_ctx, CUdevResource* resource, CUdevResourceType type);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context);
CUresult cuCtxGetExecAffinity(CUexecAffinityParam* p_exec_affinity, CUexecAffinityType type);
CUresult cuCtxGetFlags(unsigned int* flags);
CUresult cuCtxGetId(CUcontext context, unsigned long long* ctx_id);
CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit);
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* p_config);
CUresult cuCtxGetStreamPriorityRange(int* least_priority, int* greatest_priority);
CUresult cuCtxPopCurrent(CUcontext* context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxRecordEvent(CUcontext h_ctx, CUevent event);
CUresult cuCtxResetPersistingL2Cache();
CUresult cuCtxSetCacheConfig(CUfunc_cache config);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSetFlags(unsigned int flags);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config);
CUresult cuCtxSynchronize();
CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuCtxWaitEvent(CUcontext h_ctx, CUevent event);
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* ph_desc, CUdevResource* resources,
                                   unsigned int nb_resources);
CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nb_groups,
                                     const CUdevResource* input, CUdevResource* remaining,
                                     unsigned int use_flags, unsigned int min_count);
CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type);
CUresult cuGreenCtxCreate(CUgreenCtx* ph_ctx, CUdevResourceDesc desc, CUdevice device, unsigned int flags);
CUresult cuGreenCtxDestroy(CUgreenCtx h_ctx);
CUresult cuGreenCtxGetDevResource(CUgreenCtx h_ctx, CUdevResource* resource, CUdevResourceType type);
CUresult cuGreenCtxGetId(CUgreenCtx green_ctx, unsigned long long* green_ctx_id);
CUresult cuGreenCtxRecordEvent(CUgreenCtx h_ctx, CUevent event);
CUresult cuGreenCtxStreamCreate(CUstream* ph_stream, CUgreenCtx green_ctx, unsigned int flags, int priority);
CUresult cuGreenCtxWaitEvent(CUgreenCtx h_ctx, CUevent event);

// Modules, the linker, libraries and kernels.
CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice device);
CUresult cuKernelGetFunction(CUfunction* p_func, CUkernel kernel);
CUresult cuKernelGetLibrary(CUlibrary* p_lib, CUkernel kernel);
CUresult cuKernelGetName(const char** name, CUkernel function);
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t param_index, size_t* param_offset, size_t* param_size);
CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice device);
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device);
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int num_kernels, CUlibrary lib);
CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUlibrary library, const char* name);
CUresult cuLibraryGetKernel(CUkernel* p_kernel, CUlibrary library, const char* name);
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib);
CUresult cuLibraryGetManaged(CUdeviceptr* pointer, size_t* bytes, CUlibrary library, const char* name);
CUresult cuLibraryGetModule(CUmodule* p_mod, CUlibrary library);
CUresult cuLibraryGetUnifiedFunction(void** fptr, CUlibrary library, const char* symbol);
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_options_values, unsigned int num_jit_options,
                           CUlibraryOption* library_options, void** library_option_values,
                           unsigned int num_library_options);
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file_name, CUjit_option* jit_options,
                               void** jit_options_values, unsigned int num_jit_options,
                               CUlibraryOption* library_options, void** library_option_values,
                               unsigned int num_library_options);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned int num_options, CUjit_option* options, void** option_values);
CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned int num_options, CUjit_option* options, void** option_values);
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int num_options,
                       CUjit_option* options, void** option_values);
CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int num_options,
                          CUjit_option* options, void** option_values);
CUresult cuLinkComplete(CUlinkState state, void** cubin_out, size_t* size_out);
CUresult cuLinkCreate(unsigned int num_options, CUjit_option* options, void** option_values,
                      CUlinkState* state_out);
CUresult cuLinkCreate_v2(unsigned int num_options, CUjit_option* options, void** option_values,
                         CUlinkState* state_out);
CUresult cuLinkDestroy(CUlinkState state);
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int num_functions, CUmodule mod);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule hmod, const char* name);
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod);
CUresult cuModuleGetGlobal(CUdeviceptr_v1* pointer, unsigned int* bytes, CUmodule hmod, const char* name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, size_t* bytes, CUmodule hmod, const char* name);
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode);
CUresult cuModuleLoad(CUmodule* module, const char* fname);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int num_options,
                            CUjit_option* options, void** option_values);
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fat_cubin);
CUresult cuModuleUnload(CUmodule hmod);

// Functions, occupancy.
CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction function);
CUresult cuFuncGetModule(CUmodule* hmod, CUfunction function);
CUresult cuFuncGetName(const char** name, CUfunction function);
CUresult cuFuncGetParamInfo(CUfunction function, size_t param_index, size_t* param_offset,
                            size_t* param_size);
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function);
CUresult cuFuncLoad(CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attrib, int value);
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config);
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config);
CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamic_smem_size, CUfunction function,
                                                 int num_blocks, int block_size);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, CUfunction function, int block_size,
                                                     size_t dynamic_s_mem_size);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* num_blocks, CUfunction function,
                                                              int block_size, size_t dynamic_s_mem_size,
                                                              unsigned int flags);
CUresult cuOccupancyMaxActiveClusters(int* num_clusters, CUfunction function, const CUlaunchConfig* config);
CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize block_size_to_dynamic_s_mem_size,
                                          size_t dynamic_s_mem_size, int block_size_limit);
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid_size, int* block_size, CUfunction function,
                                                   CUoccupancyB2DSize block_size_to_dynamic_s_mem_size,
                                                   size_t dynamic_s_mem_size, int block_size_limit,
                                                   unsigned int flags);
CUresult cuOccupancyMaxPotentialClusterSize(int* cluster_size, CUfunction function,
                                            const CUlaunchConfig* config);

// Launches, in all forms of all versions.
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                                   unsigned int grid_dim_z, unsigned int block_dim_x,
                                   unsigned int block_dim_y, unsigned int block_dim_z,
                                   unsigned int shared_mem_bytes, CUstream stream, void** kernel_params);
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launch_params_list,
                                              unsigned int num_devices, unsigned int flags);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                                        unsigned int grid_dim_z, unsigned int block_dim_x,
                                        unsigned int block_dim_y, unsigned int block_dim_z,
                                        unsigned int shared_mem_bytes, CUstream stream, void** kernel_params);
CUresult cuLaunchGrid(CUfunction function, int grid_width, int grid_height);
CUresult cuLaunchGridAsync(CUfunction function, int grid_width, int grid_height, CUstream stream);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void* user_data);
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void* user_data);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                        unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y,
                        unsigned int block_dim_z, unsigned int shared_mem_bytes, CUstream stream,
                        void** kernel_params, void** extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                          void** extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                               void** extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                             unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y,
                             unsigned int block_dim_z, unsigned int shared_mem_bytes, CUstream stream,
                             void** kernel_params, void** extra);
CUresult cuParamSetSize(CUfunction function, unsigned int numbytes);
CUresult cuParamSetf(CUfunction function, int offset, float value);
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value);
CUresult cuParamSetv(CUfunction function, int offset, void* ptr, unsigned int numbytes);

// Device memory, managed memory, memory information.
CUresult cuMemAdvise(CUdeviceptr dev_ptr, size_t count, CUmem_advise advice, CUdevice device);
CUresult cuMemAdvise_v2(CUdeviceptr dev_ptr, size_t count, CUmem_advise advice, CUmemLocation location);
CUresult cuMemAlloc(CUdeviceptr_v1* pointer, unsigned int bytes);
CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags);
CUresult cuMemAllocPitch(CUdeviceptr_v1* pointer, unsigned int* p_pitch, unsigned int width_in_bytes,
                         unsigned int height, unsigned int element_size_bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* p_pitch, size_t width_in_bytes, size_t height,
                            unsigned int element_size_bytes);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes);
CUresult cuMemBatchDecompressAsync(CUmemDecompressParams* params_array, size_t count, unsigned int flags,
                                   size_t* error_index, CUstream stream);
CUresult cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams* params_array, size_t count, unsigned int flags,
                                        size_t* error_index, CUstream stream);
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                           CUmemLocation* prefetch_locs, size_t* prefetch_loc_idxs,
                                           size_t num_prefetch_locs, unsigned long long flags,
                                           CUstream stream);
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                                CUmemLocation* prefetch_locs, size_t* prefetch_loc_idxs,
                                                size_t num_prefetch_locs, unsigned long long flags,
                                                CUstream stream);
CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count, unsigned long long flags,
                                CUstream stream);
CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                     unsigned long long flags, CUstream stream);
CUresult cuMemFree(CUdeviceptr_v1 pointer);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemGetAddressRange(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 pointer);
CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr pointer);
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr pointer, size_t size,
                                       CUmemRangeHandleType handle_type, unsigned long long flags);
CUresult cuMemGetInfo(unsigned int* free, unsigned int* total);
CUresult cuMemGetInfo_v2(size_t* free, size_t* total);
CUresult cuMemPrefetchAsync(CUdeviceptr dev_ptr, size_t count, CUdevice dst_device, CUstream stream);
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr dev_ptr, size_t count, CUdevice dst_device, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr dev_ptr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream stream);
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr dev_ptr, size_t count, CUmemLocation location,
                                    unsigned int flags, CUstream stream);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                 CUmemLocation* prefetch_locs, size_t* prefetch_loc_idxs,
                                 size_t num_prefetch_locs, unsigned long long flags, CUstream stream);
CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                      CUmemLocation* prefetch_locs, size_t* prefetch_loc_idxs,
                                      size_t num_prefetch_locs, unsigned long long flags, CUstream stream);
CUresult cuMemRangeGetAttribute(void* data, size_t data_size, CUmem_range_attribute attribute,
                                CUdeviceptr dev_ptr, size_t count);
CUresult cuMemRangeGetAttributes(void** data, size_t* data_sizes, CUmem_range_attribute* attributes,
                                 size_t num_attributes, CUdeviceptr dev_ptr, size_t count);
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned int num_attributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr);

// Host memory.
CUresult cuMemAllocHost(void** out, unsigned int bytes);
CUresult cuMemAllocHost_v2(void** out, size_t bytes);
CUresult cuMemFreeHost(void* p);
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int flags);
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1* pdptr, void* p, unsigned int flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int flags);
CUresult cuMemHostGetFlags(unsigned int* p_flags, void* p);
CUresult cuMemHostRegister(void* p, size_t bytes, unsigned int flags);
CUresult cuMemHostRegister_v2(void* p, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void* p);

// Copies.
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1* p_copy);
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1* p_copy, CUstream stream);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* p_copy, CUstream stream);
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* p_copy, CUstream stream);
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1* p_copy);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* p_copy);
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* p_copy);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* p_copy);
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* p_copy);
CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1* p_copy);
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1* p_copy, CUstream stream);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* p_copy, CUstream stream);
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* p_copy, CUstream stream);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* p_copy);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* p_copy, CUstream stream);
CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* p_copy, CUstream stream);
CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* p_copy);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* p_copy);
CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* p_copy);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyAtoA(CUarray dst_array, unsigned int dst_offset, CUarray src_array, unsigned int src_offset,
                      unsigned int bytes);
CUresult cuMemcpyAtoA_v2(CUarray dst_array, size_t dst_offset, CUarray src_array, size_t src_offset,
                         size_t bytes);
CUresult cuMemcpyAtoA_v2_ptds(CUarray dst_array, size_t dst_offset, CUarray src_array, size_t src_offset,
                              size_t bytes);
CUresult cuMemcpyAtoD(CUdeviceptr_v1 dst_device, CUarray src_array, unsigned int src_offset,
                      unsigned int bytes);
CUresult cuMemcpyAtoD_v2(CUdeviceptr dst_device, CUarray src_array, size_t src_offset, size_t bytes);
CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dst_device, CUarray src_array, size_t src_offset, size_t bytes);
CUresult cuMemcpyAtoH(void* dst_host, CUarray src_array, unsigned int src_offset, unsigned int bytes);
CUresult cuMemcpyAtoHAsync(void* dst_host, CUarray src_array, unsigned int src_offset, unsigned int bytes,
                           CUstream stream);
CUresult cuMemcpyAtoHAsync_v2(void* dst_host, CUarray src_array, size_t src_offset, size_t bytes,
                              CUstream stream);
CUresult cuMemcpyAtoHAsync_v2_ptsz(void* dst_host, CUarray src_array, size_t src_offset, size_t bytes,
                                   CUstream stream);
CUresult cuMemcpyAtoH_v2(void* dst_host, CUarray src_array, size_t src_offset, size_t bytes);
CUresult cuMemcpyAtoH_v2_ptds(void* dst_host, CUarray src_array, size_t src_offset, size_t bytes);
CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs, size_t* fail_idx,
                            CUstream stream);
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                                 CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs,
                                 size_t* fail_idx, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs,
                               CUstream stream);
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                                    CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs,
                                    CUstream stream);
CUresult cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes* attr,
                                     CUstream stream);
CUresult cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size,
                                          CUmemcpyAttributes* attr, CUstream stream);
CUresult cuMemcpyDtoA(CUarray dst_array, unsigned int dst_offset, CUdeviceptr_v1 src_device,
                      unsigned int bytes);
CUresult cuMemcpyDtoA_v2(CUarray dst_array, size_t dst_offset, CUdeviceptr src_device, size_t bytes);
CUresult cuMemcpyDtoA_v2_ptds(CUarray dst_array, size_t dst_offset, CUdeviceptr src_device, size_t bytes);
CUresult cuMemcpyDtoD(CUdeviceptr_v1 dst_device, CUdeviceptr_v1 src_device, unsigned int bytes);
CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dst_device, CUdeviceptr_v1 src_device, unsigned int bytes,
                           CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst_device, CUdeviceptr src_device, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst_device, CUdeviceptr src_device, size_t bytes,
                                   CUstream stream);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst_device, CUdeviceptr src_device, size_t bytes);
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst_device, CUdeviceptr src_device, size_t bytes);
CUresult cuMemcpyDtoH(void* dst_host, CUdeviceptr_v1 src_device, unsigned int bytes);
CUresult cuMemcpyDtoHAsync(void* dst_host, CUdeviceptr_v1 src_device, unsigned int bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void* dst_host, CUdeviceptr src_device, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* dst_host, CUdeviceptr src_device, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoH_v2(void* dst_host, CUdeviceptr src_device, size_t bytes);
CUresult cuMemcpyDtoH_v2_ptds(void* dst_host, CUdeviceptr src_device, size_t bytes);
CUresult cuMemcpyHtoA(CUarray dst_array, unsigned int dst_offset, const void* src_host, unsigned int bytes);
CUresult cuMemcpyHtoAAsync(CUarray dst_array, unsigned int dst_offset, const void* src_host,
                           unsigned int bytes, CUstream stream);
CUresult cuMemcpyHtoAAsync_v2(CUarray dst_array, size_t dst_offset, const void* src_host, size_t bytes,
                              CUstream stream);
CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dst_array, size_t dst_offset, const void* src_host, size_t bytes,
                                   CUstream stream);
CUresult cuMemcpyHtoA_v2(CUarray dst_array, size_t dst_offset, const void* src_host, size_t bytes);
CUresult cuMemcpyHtoA_v2_ptds(CUarray dst_array, size_t dst_offset, const void* src_host, size_t bytes);
CUresult cuMemcpyHtoD(CUdeviceptr_v1 dst_device, const void* src_host, unsigned int bytes);
CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dst_device, const void* src_host, unsigned int bytes,
                           CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst_device, const void* src_host, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst_device, const void* src_host, size_t bytes,
                                   CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst_device, const void* src_host, size_t bytes);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst_device, const void* src_host, size_t bytes);
CUresult cuMemcpyPeer(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                      CUcontext src_context, size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                           CUcontext src_context, size_t bytes, CUstream stream);
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                                CUcontext src_context, size_t bytes, CUstream stream);
CUresult cuMemcpyPeer_ptds(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                           CUcontext src_context, size_t bytes);
CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes);

// Sets.
CUresult cuMemsetD16(CUdeviceptr_v1 dst_device, unsigned short us, unsigned int n);
CUresult cuMemsetD16Async(CUdeviceptr dst_device, unsigned short us, size_t n, CUstream stream);
CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst_device, unsigned short us, size_t n, CUstream stream);
CUresult cuMemsetD16_v2(CUdeviceptr dst_device, unsigned short us, size_t n);
CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst_device, unsigned short us, size_t n);
CUresult cuMemsetD2D16(CUdeviceptr_v1 dst_device, unsigned int dst_pitch, unsigned short us,
                       unsigned int width, unsigned int height);
CUresult cuMemsetD2D16Async(CUdeviceptr dst_device, size_t dst_pitch, unsigned short us, size_t width,
                            size_t height, CUstream stream);
CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dst_device, size_t dst_pitch, unsigned short us, size_t width,
                                 size_t height, CUstream stream);
CUresult cuMemsetD2D16_v2(CUdeviceptr dst_device, size_t dst_pitch, unsigned short us, size_t width,
                          size_t height);
CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dst_device, size_t dst_pitch, unsigned short us, size_t width,
                               size_t height);
CUresult cuMemsetD2D32(CUdeviceptr_v1 dst_device, unsigned int dst_pitch, unsigned int ui, unsigned int width,
                       unsigned int height);
CUresult cuMemsetD2D32Async(CUdeviceptr dst_device, size_t dst_pitch, unsigned int ui, size_t width,
                            size_t height, CUstream stream);
CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dst_device, size_t dst_pitch, unsigned int ui, size_t width,
                                 size_t height, CUstream stream);
CUresult cuMemsetD2D32_v2(CUdeviceptr dst_device, size_t dst_pitch, unsigned int ui, size_t width,
                          size_t height);
CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dst_device, size_t dst_pitch, unsigned int ui, size_t width,
                               size_t height);
CUresult cuMemsetD2D8(CUdeviceptr_v1 dst_device, unsigned int dst_pitch, unsigned char uc, unsigned int width,
                      unsigned int height);
CUresult cuMemsetD2D8Async(CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc, size_t width,
                           size_t height, CUstream stream);
CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc, size_t width,
                                size_t height, CUstream stream);
CUresult cuMemsetD2D8_v2(CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc, size_t width,
                         size_t height);
CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc, size_t width,
                              size_t height);
CUresult cuMemsetD32(CUdeviceptr_v1 dst_device, unsigned int ui, unsigned int n);
CUresult cuMemsetD32Async(CUdeviceptr dst_device, unsigned int ui, size_t n, CUstream stream);
CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst_device, unsigned int ui, size_t n, CUstream stream);
CUresult cuMemsetD32_v2(CUdeviceptr dst_device, unsigned int ui, size_t n);
CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst_device, unsigned int ui, size_t n);
CUresult cuMemsetD8(CUdeviceptr_v1 dst_device, unsigned char uc, unsigned int n);
CUresult cuMemsetD8Async(CUdeviceptr dst_device, unsigned char uc, size_t n, CUstream stream);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst_device, unsigned char uc, size_t n, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr dst_device, unsigned char uc, size_t n);
CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst_device, unsigned char uc, size_t n);

// Streams.
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data, unsigned int flags);
CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void* user_data,
                                  unsigned int flags);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t length, unsigned int flags);
CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr pointer, size_t length, unsigned int flags);
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* param_array,
                            unsigned int flags);
CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* param_array,
                                 unsigned int flags);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* param_array,
                               unsigned int flags);
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count,
                                    CUstreamBatchMemOpParams* param_array, unsigned int flags);
CUresult cuStreamBeginCapture(CUstream stream);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph h_graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependency_data, size_t num_dependencies,
                                     CUstreamCaptureMode mode);
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph h_graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* dependency_data, size_t num_dependencies,
                                          CUstreamCaptureMode mode);
CUresult cuStreamBeginCapture_ptsz(CUstream stream);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamCopyAttributes(CUstream dst_stream, CUstream src_stream);
CUresult cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src);
CUresult cuStreamCreate(CUstream* ph_stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream* ph_stream, unsigned int flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamEndCapture(CUstream stream, CUgraph* ph_graph);
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* ph_graph);
CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attr, CUstreamAttrValue* value);
CUresult cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID attr, CUstreamAttrValue* value_out);
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* capture_status_out,
                                cuuint64_t* id_out);
CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* capture_status_out,
                                     cuuint64_t* id_out);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* capture_status_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out, size_t* num_dependencies_out);
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* capture_status_out,
                                        cuuint64_t* id_out, CUgraph* graph_out,
                                        const CUgraphNode** dependencies_out, size_t* num_dependencies_out);
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* capture_status_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edge_data_out, size_t* num_dependencies_out);
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* capture_status_out,
                                        cuuint64_t* id_out, CUgraph* graph_out,
                                        const CUgraphNode** dependencies_out,
                                        const CUgraphEdgeData** edge_data_out, size_t* num_dependencies_out);
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context);
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* context);
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* p_ctx, CUgreenCtx* p_green_ctx);
CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext* p_ctx, CUgreenCtx* p_green_ctx);
CUresult cuStreamGetDevice(CUstream stream, CUdevice* device);
CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice* device);
CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags);
CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned int* flags);
CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* ph_ctx);
CUresult cuStreamGetId(CUstream stream, unsigned long long* stream_id);
CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long* stream_id);
CUresult cuStreamGetPriority(CUstream stream, int* priority);
CUresult cuStreamGetPriority_ptsz(CUstream stream, int* priority);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* capture_status);
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* capture_status);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamQuery_ptsz(CUstream stream);
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue* param);
CUresult cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue* value);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies,
                                           size_t num_dependencies, unsigned int flags);
CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode* dependencies,
                                                size_t num_dependencies, unsigned int flags);
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* dependency_data, size_t num_dependencies,
                                              unsigned int flags);
CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode* dependencies,
                                                   const CUgraphEdgeData* dependency_data,
                                                   size_t num_dependencies, unsigned int flags);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags);
CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                      unsigned int flags);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags);
CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                      unsigned int flags);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode);

// Events.
CUresult cuEventCreate(CUevent* ph_event, unsigned int flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventElapsedTime(float* p_milliseconds, CUevent h_start, CUevent h_end);
CUresult cuEventElapsedTime_v2(float* p_milliseconds, CUevent h_start, CUevent h_end);
CUresult cuEventQuery(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);

// Stream-ordered memory and pools.
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);
CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* pool_props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* share_data_out, CUdeviceptr ptr);
CUresult cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool,
                                          CUmemAllocationHandleType handle_type, unsigned long long flags);
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool mem_pool, CUmemLocation* location);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                            CUmemAllocationHandleType handle_type, unsigned long long flags);
CUresult cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData* share_data);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t min_bytes_to_keep);
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool);

// Virtual memory management, multicast.
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size);
CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags);
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags);
CUresult cuMemExportToShareableHandle(void* shareable_handle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handle_type, unsigned long long flags);
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr);
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType sh_handle_type);
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
CUresult cuMemMapArrayAsync(CUarrayMapInfo* map_info_list, unsigned int count, CUstream stream);
CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* map_info_list, unsigned int count, CUstream stream);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mc_handle, CUdevice device);
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mc_handle, size_t mc_offset, CUdeviceptr memptr,
                             size_t size, unsigned long long flags);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mc_handle, size_t mc_offset,
                            CUmemGenericAllocationHandle mem_handle, size_t mem_offset, size_t size,
                            unsigned long long flags);
CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle mc_handle, CUdevice device, size_t mc_offset,
                                CUdeviceptr memptr, size_t size, unsigned long long flags);
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle mc_handle, CUdevice device, size_t mc_offset,
                               CUmemGenericAllocationHandle mem_handle, size_t mem_offset, size_t size,
                               unsigned long long flags);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle* mc_handle, const CUmulticastObjectProp* prop);
CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* prop,
                                   CUmulticastGranularity_flags option);
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mc_handle, CUdevice device, size_t mc_offset,
                           size_t size);

// Arrays.
CUresult cuArray3DCreate(CUarray* p_handle, const CUDA_ARRAY3D_DESCRIPTOR_v1* p_allocate_array);
CUresult cuArray3DCreate_v2(CUarray* p_handle, const CUDA_ARRAY3D_DESCRIPTOR* p_allocate_array);
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* p_array_descriptor, CUarray h_array);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* p_array_descriptor, CUarray h_array);
CUresult cuArrayCreate(CUarray* p_handle, const CUDA_ARRAY_DESCRIPTOR_v1* p_allocate_array);
CUresult cuArrayCreate_v2(CUarray* p_handle, const CUDA_ARRAY_DESCRIPTOR* p_allocate_array);
CUresult cuArrayDestroy(CUarray h_array);
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* p_array_descriptor, CUarray h_array);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* p_array_descriptor, CUarray h_array);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memory_requirements, CUarray array,
                                      CUdevice device);
CUresult cuArrayGetPlane(CUarray* p_plane_array, CUarray h_array, unsigned int plane_idx);
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparse_properties, CUarray array);
CUresult cuMipmappedArrayCreate(CUmipmappedArray* p_handle,
                                const CUDA_ARRAY3D_DESCRIPTOR* p_mipmapped_array_desc,
                                unsigned int num_mipmap_levels);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray h_mipmapped_array);
CUresult cuMipmappedArrayGetLevel(CUarray* p_level_array, CUmipmappedArray h_mipmapped_array,
                                  unsigned int level);
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memory_requirements,
                                               CUmipmappedArray mipmap, CUdevice device);
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparse_properties,
                                             CUmipmappedArray mipmap);

// Textures and surfaces.
CUresult cuSurfObjectCreate(CUsurfObject* p_surf_object, const CUDA_RESOURCE_DESC* p_res_desc);
CUresult cuSurfObjectDestroy(CUsurfObject surf_object);
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* p_res_desc, CUsurfObject surf_object);
CUresult cuTexObjectCreate(CUtexObject* p_tex_object, const CUDA_RESOURCE_DESC* p_res_desc,
                           const CUDA_TEXTURE_DESC* p_tex_desc,
                           const CUDA_RESOURCE_VIEW_DESC* p_res_view_desc);
CUresult cuTexObjectDestroy(CUtexObject tex_object);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* p_res_desc, CUtexObject tex_object);
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* p_res_view_desc, CUtexObject tex_object);
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* p_tex_desc, CUtexObject tex_object);

// Sharing between processes and with other interfaces.
CUresult cuDestroyExternalMemory(CUexternalMemory ext_mem);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* dev_ptr, CUexternalMemory ext_mem,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* buffer_desc);
CUresult cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray* mipmap, CUexternalMemory ext_mem,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* mipmap_desc);
CUresult cuGraphicsMapResources(unsigned int count, CUgraphicsResource* resources, CUstream stream);
CUresult cuGraphicsMapResources_ptsz(unsigned int count, CUgraphicsResource* resources, CUstream stream);
CUresult cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray* p_mipmapped_array,
                                                   CUgraphicsResource resource);
CUresult cuGraphicsResourceGetMappedPointer(CUdeviceptr_v1* p_dev_ptr, unsigned int* p_size,
                                            CUgraphicsResource resource);
CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr* p_dev_ptr, size_t* p_size,
                                               CUgraphicsResource resource);
CUresult cuGraphicsResourceSetMapFlags(CUgraphicsResource resource, unsigned int flags);
CUresult cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource resource, unsigned int flags);
CUresult cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource* resources, CUstream stream);
CUresult cuGraphicsUnmapResources_ptsz(unsigned int count, CUgraphicsResource* resources, CUstream stream);
CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource);
CUresult cuImportExternalMemory(CUexternalMemory* ext_mem_out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* mem_handle_desc);
CUresult cuIpcCloseMemHandle(CUdeviceptr pointer);
CUresult cuIpcGetEventHandle(CUipcEventHandle* p_handle, CUevent event);
CUresult cuIpcGetMemHandle(CUipcMemHandle* p_handle, CUdeviceptr pointer);
CUresult cuIpcOpenEventHandle(CUevent* ph_event, CUipcEventHandle handle);
CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int flags);

// Graphs.
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode* ph_graph_node, CUgraph h_graph,
                                  const CUgraphNode* dependencies, size_t num_dependencies,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS* node_params);
CUresult cuGraphAddChildGraphNode(CUgraphNode* ph_graph_node, CUgraph h_graph,
                                  const CUgraphNode* dependencies, size_t num_dependencies,
                                  CUgraph child_graph);
CUresult cuGraphAddDependencies(CUgraph h_graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t num_dependencies);
CUresult cuGraphAddDependencies_v2(CUgraph h_graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edge_data, size_t num_dependencies);
CUresult cuGraphAddEmptyNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                             size_t num_dependencies);
CUresult cuGraphAddEventRecordNode(CUgraphNode* ph_graph_node, CUgraph h_graph,
                                   const CUgraphNode* dependencies, size_t num_dependencies, CUevent event);
CUresult cuGraphAddEventWaitNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                                 size_t num_dependencies, CUevent event);
CUresult cuGraphAddHostNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                            size_t num_dependencies, const CUDA_HOST_NODE_PARAMS* node_params);
CUresult cuGraphAddKernelNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                              size_t num_dependencies, const CUDA_KERNEL_NODE_PARAMS_v1* node_params);
CUresult cuGraphAddKernelNode_v2(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                                 size_t num_dependencies, const CUDA_KERNEL_NODE_PARAMS* node_params);
CUresult cuGraphAddMemAllocNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                                size_t num_dependencies, CUDA_MEM_ALLOC_NODE_PARAMS* node_params);
CUresult cuGraphAddMemFreeNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                               size_t num_dependencies, CUdeviceptr pointer);
CUresult cuGraphAddMemcpyNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                              size_t num_dependencies, const CUDA_MEMCPY3D* copy_params, CUcontext context);
CUresult cuGraphAddMemsetNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                              size_t num_dependencies, const CUDA_MEMSET_NODE_PARAMS* memset_params,
                              CUcontext context);
CUresult cuGraphAddNode(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                        size_t num_dependencies, CUgraphNodeParams* node_params);
CUresult cuGraphAddNode_v2(CUgraphNode* ph_graph_node, CUgraph h_graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* dependency_data, size_t num_dependencies,
                           CUgraphNodeParams* node_params);
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode h_node, CUDA_BATCH_MEM_OP_NODE_PARAMS* node_params_out);
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode h_node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* node_params);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode h_node, CUgraph* ph_graph);
CUresult cuGraphClone(CUgraph* ph_graph_clone, CUgraph original_graph);
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* p_handle_out, CUgraph h_graph,
                                        CUcontext context, unsigned int default_launch_value,
                                        unsigned int flags);
CUresult cuGraphCreate(CUgraph* ph_graph, unsigned int flags);
CUresult cuGraphDebugDotPrint(CUgraph h_graph, const char* path, unsigned int flags);
CUresult cuGraphDestroy(CUgraph h_graph);
CUresult cuGraphDestroyNode(CUgraphNode h_node);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode h_node, CUevent* event_out);
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode h_node, CUevent event);
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode h_node, CUevent* event_out);
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode h_node, CUevent event);
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* node_params);
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                            CUgraph child_graph);
CUresult cuGraphExecDestroy(CUgraphExec h_graph_exec);
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec h_graph_exec, CUgraphNode h_node, CUevent event);
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec h_graph_exec, CUgraphNode h_node, CUevent event);
CUresult cuGraphExecGetFlags(CUgraphExec h_graph_exec, cuuint64_t* flags);
CUresult cuGraphExecHostNodeSetParams(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                      const CUDA_HOST_NODE_PARAMS* node_params);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* node_params);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                           const CUDA_KERNEL_NODE_PARAMS* node_params);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                        const CUDA_MEMCPY3D* copy_params, CUcontext context);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                        const CUDA_MEMSET_NODE_PARAMS* memset_params, CUcontext context);
CUresult cuGraphExecNodeSetParams(CUgraphExec h_graph_exec, CUgraphNode h_node,
                                  CUgraphNodeParams* node_params);
CUresult cuGraphExecUpdate(CUgraphExec h_graph_exec, CUgraph h_graph, CUgraphNode* h_error_node_out,
                           CUgraphExecUpdateResult* update_result_out);
CUresult cuGraphExecUpdate_v2(CUgraphExec h_graph_exec, CUgraph h_graph,
                              CUgraphExecUpdateResultInfo* result_info);
CUresult cuGraphGetEdges(CUgraph h_graph, CUgraphNode* from, CUgraphNode* to, size_t* num_edges);
CUresult cuGraphGetEdges_v2(CUgraph h_graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edge_data,
                            size_t* num_edges);
CUresult cuGraphGetNodes(CUgraph h_graph, CUgraphNode* nodes, size_t* num_nodes);
CUresult cuGraphGetRootNodes(CUgraph h_graph, CUgraphNode* root_nodes, size_t* num_root_nodes);
CUresult cuGraphHostNodeGetParams(CUgraphNode h_node, CUDA_HOST_NODE_PARAMS* node_params);
CUresult cuGraphHostNodeSetParams(CUgraphNode h_node, const CUDA_HOST_NODE_PARAMS* node_params);
CUresult cuGraphInstantiate(CUgraphExec* ph_graph_exec, CUgraph h_graph, CUgraphNode* ph_error_node,
                            char* log_buffer, size_t buffer_size);
CUresult cuGraphInstantiateWithFlags(CUgraphExec* ph_graph_exec, CUgraph h_graph, unsigned long long flags);
CUresult cuGraphInstantiateWithParams(CUgraphExec* ph_graph_exec, CUgraph h_graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params);
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* ph_graph_exec, CUgraph h_graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params);
CUresult cuGraphInstantiate_v2(CUgraphExec* ph_graph_exec, CUgraph h_graph, CUgraphNode* ph_error_node,
                               char* log_buffer, size_t buffer_size);
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src);
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode h_node, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue* value_out);
CUresult cuGraphKernelNodeGetParams(CUgraphNode h_node, CUDA_KERNEL_NODE_PARAMS_v1* node_params);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode h_node, CUDA_KERNEL_NODE_PARAMS* node_params);
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode h_node, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue* value);
CUresult cuGraphKernelNodeSetParams(CUgraphNode h_node, const CUDA_KERNEL_NODE_PARAMS_v1* node_params);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode h_node, const CUDA_KERNEL_NODE_PARAMS* node_params);
CUresult cuGraphLaunch(CUgraphExec h_graph, CUstream stream);
CUresult cuGraphLaunch_ptsz(CUgraphExec h_graph_exec, CUstream stream);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode h_node, CUDA_MEM_ALLOC_NODE_PARAMS* params_out);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode h_node, CUdeviceptr* dptr_out);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode h_node, CUDA_MEMCPY3D* node_params);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode h_node, const CUDA_MEMCPY3D* node_params);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode h_node, CUDA_MEMSET_NODE_PARAMS* node_params);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode h_node, const CUDA_MEMSET_NODE_PARAMS* node_params);
CUresult cuGraphNodeFindInClone(CUgraphNode* ph_node, CUgraphNode h_original_node, CUgraph h_cloned_graph);
CUresult cuGraphNodeGetDependencies(CUgraphNode h_node, CUgraphNode* dependencies, size_t* num_dependencies);
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode h_node, CUgraphNode* dependencies,
                                       CUgraphEdgeData* edge_data, size_t* num_dependencies);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode h_node, CUgraphNode* dependent_nodes,
                                      size_t* num_dependent_nodes);
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode h_node, CUgraphNode* dependent_nodes,
                                         CUgraphEdgeData* edge_data, size_t* num_dependent_nodes);
CUresult cuGraphNodeGetEnabled(CUgraphExec h_graph_exec, CUgraphNode h_node, unsigned int* is_enabled);
CUresult cuGraphNodeGetType(CUgraphNode h_node, CUgraphNodeType* type);
CUresult cuGraphNodeSetEnabled(CUgraphExec h_graph_exec, CUgraphNode h_node, unsigned int is_enabled);
CUresult cuGraphNodeSetParams(CUgraphNode h_node, CUgraphNodeParams* node_params);
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count);
CUresult cuGraphRemoveDependencies(CUgraph h_graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t num_dependencies);
CUresult cuGraphRemoveDependencies_v2(CUgraph h_graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edge_data, size_t num_dependencies);
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags);
CUresult cuGraphUpload(CUgraphExec h_graph, CUstream stream);
CUresult cuGraphUpload_ptsz(CUgraphExec h_graph_exec, CUstream stream);
CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                            unsigned int initial_refcount, unsigned int flags);
CUresult cuUserObjectRelease(CUuserObject object, unsigned int count);
CUresult cuUserObjectRetain(CUuserObject object, unsigned int count);

// Profiler control, notifications.

}  // extern "C"
