//! Words and tables as HTML that is also well-formed XML: every element is closed, every value quoted.

/// Text as it may stand in an element or in a quoted attribute.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            // No other control character may stand in a document; a program's last words have any.
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// A table of words, its first line the headings, its first column the rows' names.
pub fn table(cells: &[Vec<String>], row_class: impl Fn(usize) -> String) -> String {
    let mut text = String::from("<div class=\"scroll\"><table>\n");
    for (number, row) in cells.iter().enumerate() {
        let class = if number == 0 { String::new() } else { row_class(number - 1) };
        text +=
            &if class.is_empty() { "<tr>".to_owned() } else { format!("<tr class=\"{}\">", escaped(&class)) };
        for (column, cell) in row.iter().enumerate() {
            let cell = ranges_apart(&escaped(cell));
            let scope = if number == 0 { "col" } else { "row" };
            let heads = number == 0 || column == 0;
            text += &if heads {
                format!("<th scope=\"{scope}\">{cell}</th>")
            } else {
                format!("<td>{cell}</td>")
            };
        }
        text += "</tr>\n";
    }
    text + "</table></div>\n"
}

/// The range of a figure is set smaller than the figure; the words stay as they are.
fn ranges_apart(cell: &str) -> String {
    match cell.split_once(" [") {
        Some((figure, rest)) => {
            format!("{figure} <small>[{rest}</small>")
        }
        None => cell.to_owned(),
    }
}
