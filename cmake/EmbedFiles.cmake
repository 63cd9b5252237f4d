# Writes text files as a C++ table of {name, text}; a name is PREFIX, the file's name and SUFFIX.
# Usage: cmake -DOUTPUT=file -DPREFIX=ogc/ -DSUFFIX=.cuh -DFILES="a.cuh;b.cuh" -P EmbedFiles.cmake
set(text "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} body)
  # A string literal may be limited to 64 KiB by compilers; longer texts become several, which C++ joins.
  string(LENGTH "${body}" length)
  set(literals "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${body}" ${at} 16000 part)
    string(APPEND literals "R\"ogc_text(${part})ogc_text\"\n")
    math(EXPR at "${at} + 16000")
  endwhile()
  string(APPEND text "{\"${PREFIX}${name}${SUFFIX}\", ${literals}},\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
