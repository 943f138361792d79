//! Source text as tokens, and patterns that match them: white space and comments do not count.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::Result;

/// A token, with the bytes that it occupies. Delimiters are tokens, too.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// Parses a source, or a part in which delimiters are balanced.
pub(super) fn stream(text: &str) -> Result<TokenStream> {
    text.parse().map_err(|error| format!("`{text}`: {error}").into())
}

pub(super) fn flat(stream: TokenStream) -> Vec<Token> {
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let TokenTree::Group(group) = tree else {
            tokens.push(Token { text: tree.to_string(), range: tree.span().byte_range() });
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        tokens.push(Token { text: open.to_owned(), range: group.span_open().byte_range() });
        flatten(group.stream(), tokens);
        tokens.push(Token { text: close.to_owned(), range: group.span_close().byte_range() });
    }
}

/// Returns the end of the group whose delimiter opens at `at`, past its closing delimiter; `None`
/// if no group opens there.
pub(super) fn end_of_group(tokens: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ if depth == 0 => return None,
            _ => continue,
        }
        if depth == 0 {
            return Some(place + 1);
        }
    }
    None
}

/// A sequence of tokens in which `$name` matches any balanced sequence, the same one wherever it
/// occurs.
#[derive(Debug)]
pub(super) struct Pattern(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Token(String),
    Any(String),
}

/// A match of a pattern: the range of tokens, and the ranges that its placeholders match, in
/// tokens.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) tokens: Range<usize>,
    bound: BTreeMap<String, Range<usize>>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut tokens = flat(stream(text)?).into_iter();
        while let Some(token) = tokens.next() {
            pieces.push(match token.text.as_str() {
                "$" => Piece::Any(tokens.next().ok_or("`$` has no name")?.text),
                _ => Piece::Token(token.text),
            });
        }
        if !matches!(pieces.first(), Some(Piece::Token(_))) {
            return Err(format!("`{text}` does not begin with a token").into());
        }
        Ok(Self(pieces))
    }

    /// Returns every match, each with as few tokens as possible.
    pub(super) fn find(&self, tokens: &[Token]) -> Vec<Match> {
        let at = |start| {
            let mut bound = BTreeMap::new();
            let end = extend(&self.0, tokens, start, &mut bound)?;
            Some(Match { tokens: start..end, bound })
        };
        (0..tokens.len()).filter_map(at).collect()
    }
}

/// Returns the end of the match of `pieces` that begins at `at`.
fn extend(
    pieces: &[Piece],
    tokens: &[Token],
    at: usize,
    bound: &mut BTreeMap<String, Range<usize>>,
) -> Option<usize> {
    let (first, rest) = match pieces.split_first() {
        None => return Some(at),
        Some((Piece::Token(text), rest)) => {
            return if tokens.get(at)?.text == *text { extend(rest, tokens, at + 1, bound) } else { None };
        }
        Some((Piece::Any(name), rest)) => (name, rest),
    };
    if let Some(same) = bound.get(first).cloned() {
        let end = at + same.len();
        let equal = tokens.get(at..end)?.iter().zip(&tokens[same]).all(|(a, b)| a.text == b.text);
        return if equal { extend(rest, tokens, end, bound) } else { None };
    }
    let mut end = at;
    loop {
        bound.insert(first.clone(), at..end);
        if let Some(whole) = extend(rest, tokens, end, bound) {
            return Some(whole);
        }
        bound.remove(first);
        end = match tokens.get(end)?.text.as_str() {
            ")" | "]" | "}" => return None,
            _ => end_of_group(tokens, end).unwrap_or(end + 1),
        };
    }
}

impl Match {
    /// Returns the replacement, with the source text that its placeholders match.
    pub(super) fn fill(&self, replacement: &str, source: &str, tokens: &[Token]) -> String {
        let mut text = replacement.to_owned();
        for (name, range) in &self.bound {
            let stands_for = match &tokens[range.clone()] {
                [] => "",
                [first, .., last] => &source[first.range.start..last.range.end],
                [only] => &source[only.range.clone()],
            };
            text = text.replace(&format!("${name}"), stands_for);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of replacing the only match in `source`, or the number of matches.
    fn replaced(source: &str, find: &str, replacement: &str) -> Result<String, usize> {
        let tokens = flat(stream(source).unwrap());
        let found = Pattern::new(find).unwrap().find(&tokens);
        let [only] = found.as_slice() else { return Err(found.len()) };
        let range = tokens[only.tokens.start].range.start..tokens[only.tokens.end - 1].range.end;
        let filled = only.fill(replacement, source, &tokens);
        Ok([&source[..range.start], &filled, &source[range.end..]].concat())
    }

    #[test]
    fn ignores_white_space_and_comments() {
        let source = "a(b /* c */,\n// d\n e);";
        assert_eq!(replaced(source, "a( b,e )", "f").unwrap(), "f;");
        assert_eq!(replaced(source, "a(e)", "f"), Err(0));
        assert_eq!(replaced("a; a;", "a", "f"), Err(2));
    }

    #[test]
    fn exchanges_statements_by_placeholders() {
        let source = "{ set(me & !bit(level)); let before = and(x, { y; }); z }";
        let swapped = replaced(source, "set($a); let before = $b;", "let before = $b; set($a);").unwrap();
        assert_eq!(swapped, "{ let before = and(x, { y; }); set(me & !bit(level)); z }");
    }

    #[test]
    fn placeholders_match_one_group_and_equal_tokens() {
        assert_eq!(replaced("f(a, b) c", "f($x) c", "$x").unwrap(), "a, b");
        assert_eq!(replaced("p == q, p == p", "p == p", "t").unwrap(), "p == q, t");
        assert_eq!(replaced("f(a) + g(b), f(a) + g(a)", "f($x) + g($x)", "$x").unwrap(), "f(a) + g(b), a");
    }

    #[test]
    fn rejects_malformed_pattern() {
        assert!(Pattern::new("f(").is_err());
        assert!(Pattern::new("$a b").is_err());
        assert!(Pattern::new("").is_err());
    }
}
