# Writes the device headers as a C++ table of {name, text}. Usage: cmake -DOUTPUT=file -DHEADERS="a.cuh;b.cuh" -P EmbedHeaders.cmake
set(text "")
foreach(header ${HEADERS})
  get_filename_component(name ${header} NAME)
  file(READ ${header} body)
  string(APPEND text "{\"ogc/${name}\", R\"ogc_header(${body})ogc_header\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
