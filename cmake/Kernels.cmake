# Files named after an instruction set hold kernels for it alone. Each is compiled for that set where the
# target has it and to nothing elsewhere; which one runs is decided when the program starts.
include(CheckCXXCompilerFlag)
function(stoker_kernel file flag)
  string(MAKE_C_IDENTIFIER "STOKER_HAS_${flag}" result)
  check_cxx_compiler_flag("${flag}" ${result})
  if(${result} AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/src/native/core/${file}")
    set_source_files_properties("src/native/core/${file}" PROPERTIES COMPILE_OPTIONS "${flag}")
  endif()
endfunction()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  stoker_kernel(crc32c_sse42.cpp -msse4.2)
  stoker_kernel(resample_avx2.cpp -mavx2)
  stoker_kernel(color_avx2.cpp -mavx2)
  stoker_kernel(pixel_split_avx2.cpp -mavx2)
  stoker_kernel(jpeg/entropy_bmi2.cpp -mbmi2)
  stoker_kernel(jpeg/sample_avx2.cpp -mavx2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  stoker_kernel(crc32c_arm64.cpp -march=armv8-a+crc)
endif()

# TensorFlow rounds after each operation; a fused multiply-add rounds once.
set_source_files_properties(src/native/core/resample_tf1.cpp PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
