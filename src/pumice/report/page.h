// One self-contained HTML file: text and tables are set here, figures are drawn by its script.
#pragma once

#include <string>

#include "pumice/report/report_view.h"

namespace pumice::report {

// The page asks for nothing: style, script (with D3) and numbers are inside, and its content
// security policy forbids requests and every script but its own. Everything from records is
// escaped. `made_by`: the version that renders, for the last line.
std::string page(const ReportView& view, const std::string& made_by);

// & < > " ' as entities: safe in text and in quoted attributes.
std::string escaped(const std::string& text);
// JSON that no HTML parser can take for the end of a script.
std::string escaped_json(const Json& json);

// The parts of the page that the build bundles with esbuild (src/pumice/report/page/).
namespace embedded {
extern const char* const page_html;
extern const char* const page_css;
extern const char* const page_js;
}  // namespace embedded

}  // namespace pumice::report
