//! Splits the text of a metadata file into tokens.

use super::{Parsed, Wrong};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Number(i128),
    Text(String),
    Sign(char),
    /// `:=`
    Becomes,
    /// `...`
    Dots,
}

pub(super) fn tokens(text: &str) -> Parsed<Vec<(Token, usize)>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(c) = rest.chars().next() {
        let wrong = |problem: &str| Wrong { line, problem: problem.to_owned() };
        let (token, length) = match c {
            '/' if rest.starts_with("/*") => {
                (None, rest.find("*/").ok_or(wrong("a comment has no end"))? + 2)
            }
            '/' if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
            '"' => {
                let (text, length) = quoted(rest).ok_or(wrong("a text has no end"))?;
                (Some(Token::Text(text)), length)
            }
            c if c.is_ascii_digit() => {
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                (
                    Some(Token::Number(parse_number(&rest[..length]).ok_or(wrong("this is no number"))?)),
                    length,
                )
            }
            c if c.is_alphabetic() || c == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                (Some(Token::Word(rest[..length].to_owned())), length)
            }
            ':' if rest.starts_with(":=") => (Some(Token::Becomes), 2),
            '.' if rest.starts_with("...") => (Some(Token::Dots), 3),
            c if c.is_whitespace() || c == '\0' => (None, c.len_utf8()),
            c => (Some(Token::Sign(c)), c.len_utf8()),
        };
        tokens.extend(token.map(|token| (token, line)));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    Ok(tokens)
}

fn quoted(rest: &str) -> Option<(String, usize)> {
    let (mut text, mut escaped) = (String::new(), false);
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Some((text, at + 1)),
            '\\' if !escaped => escaped = true,
            c => {
                text.push(if escaped && c == 'n' { '\n' } else { c });
                escaped = false;
            }
        }
    }
    None
}

fn parse_number(text: &str) -> Option<i128> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => i128::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}
