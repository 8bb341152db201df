# Installs the documents and builds the Debian package: tools/package writes the man pages and the changelog
# into package/ in the build folder and calls cpack, which installs as `cmake --install --prefix /usr` does.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME carve)
set(CPACK_PACKAGE_CONTACT "Carve <carve@carve.dev>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "slices of NVIDIA GPUs: memory quotas and shares of compute")
set(CPACK_PACKAGE_DESCRIPTION
"Carve cuts a GPU into slices, each with a hard memory quota and a share of
compute, and runs unmodified programs and containers in them. The agent keeps
slices inside their limits and accounts for them; the controller keeps services
of several replicas on them. Simulated devices are included, for machines
without a GPU.")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS haproxy)    # Serves the endpoints of services.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "podman, runc, python3")  # Containers; the engines of jobs.
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
foreach(script postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/${script})
endforeach()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
install(DIRECTORY ${CMAKE_BINARY_DIR}/package/man1 DESTINATION share/man OPTIONAL)
install(FILES ${CMAKE_BINARY_DIR}/package/changelog.gz DESTINATION share/doc/carve OPTIONAL)
install(FILES deploy/debian/copyright DESTINATION share/doc/carve)
install(FILES deploy/debian/lintian-overrides DESTINATION share/lintian/overrides RENAME carve)
install(FILES deploy/prometheus/rules.yaml deploy/prometheus/scrape.yaml DESTINATION share/carve/prometheus)
install(DIRECTORY deploy/grafana/ DESTINATION share/carve/grafana FILES_MATCHING PATTERN "*.json")
install(DIRECTORY examples DESTINATION share/doc/carve)
install(DIRECTORY docs/ DESTINATION share/doc/carve FILES_MATCHING PATTERN "*.md" PATTERN decisions EXCLUDE PATTERN measurements EXCLUDE)
include(CPack)
