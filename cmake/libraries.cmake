# The libraries that packtrain stands on. libjpeg-turbo is required; each of the others is optional, and what needs
# it is left out whole where it is absent (`packtrain doctor` says so).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# One library with two interfaces: whole images, and rows.
pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)

# packtrain_optional(NAME pkg-config-name[|another]): sets PACKTRAIN_HAVE_NAME, and PACKTRAIN_LIBRARIES_NAME
# and PACKTRAIN_HEADERS_NAME where the target would tell all files of it; -DPACKTRAIN_WITHOUT_NAME=ON leaves it out.
function(packtrain_optional name package)
  option(PACKTRAIN_WITHOUT_${name} "build without ${package}" OFF)
  set(have OFF)
  if(NOT PACKTRAIN_WITHOUT_${name})
    string(REPLACE "|" ";" packages ${package})
    pkg_search_module(${name} IMPORTED_TARGET ${packages})
    if(${name}_FOUND)
      set(have ON)
      get_target_property(libraries PkgConfig::${name} INTERFACE_LINK_LIBRARIES)
      get_target_property(headers PkgConfig::${name} INTERFACE_INCLUDE_DIRECTORIES)
      list(REMOVE_ITEM headers /usr/include headers-NOTFOUND)
      set(PACKTRAIN_LIBRARIES_${name} ${libraries} PARENT_SCOPE)
      set(PACKTRAIN_HEADERS_${name} ${headers} PARENT_SCOPE)
    endif()
  endif()
  set(PACKTRAIN_HAVE_${name} ${have} PARENT_SCOPE)
endfunction()

packtrain_optional(URING liburing)
packtrain_optional(ISAL libisal)
packtrain_optional(DEFLATE libdeflate)
packtrain_optional(ZSTD libzstd)
packtrain_optional(ZLIB zlib)
packtrain_optional(PNG libpng)
packtrain_optional(WEBP libwebp)
packtrain_optional(FLAC flac)
packtrain_optional(LZ4 liblz4)
packtrain_optional(BLOSC blosc)

add_library(packtrain_third_party INTERFACE)
target_include_directories(packtrain_third_party SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/third_party/include)
