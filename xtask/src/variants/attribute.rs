//! Attributes in a source, with their arguments and positions.

use proc_macro2::{Delimiter, Group, TokenTree};

/// An attribute that takes arguments.
pub(super) struct Attribute {
    /// The end of its name.
    end: usize,
    arguments: Option<Group>,
}

impl Attribute {
    /// Reads the brackets of an attribute, if the last part of its path is `name`.
    pub(super) fn read(tree: &TokenTree, name: &str) -> Option<Self> {
        let TokenTree::Group(group) = tree else { return None };
        if group.delimiter() != Delimiter::Bracket {
            return None;
        }
        let mut path: Vec<TokenTree> = group.stream().into_iter().collect();
        let arguments = path.pop_if(|last| matches!(last, TokenTree::Group(_)));
        let simple = path.iter().all(|tree| matches!(tree, TokenTree::Ident(_)) || is_punct(tree, ':'));
        let last = path.last().filter(|last| simple && is_ident(last, name))?;
        let arguments = arguments.and_then(|tree| match tree {
            TokenTree::Group(group) => Some(group),
            _ => None,
        });
        Some(Self { end: last.span().byte_range().end, arguments })
    }

    /// Returns the position at which another argument can be inserted before the others, and the
    /// text to insert.
    pub(super) fn with(&self, argument: &str) -> (usize, String) {
        match &self.arguments {
            None => (self.end, format!("({argument})")),
            Some(group) => {
                let comma = if group.stream().is_empty() { "" } else { ", " };
                (group.span_open().byte_range().end, format!("{argument}{comma}"))
            }
        }
    }

    /// Returns the tokens of the argument named `key`, with the comma after it.
    pub(super) fn entry(&self, key: &str) -> Option<Vec<TokenTree>> {
        let arguments: Vec<TokenTree> = self.arguments.as_ref()?.stream().into_iter().collect();
        let mut entries = arguments.split_inclusive(|tree| is_punct(tree, ','));
        entries.find(|entry| is_ident(&entry[0], key)).map(<[TokenTree]>::to_vec)
    }

    /// Returns the level of a task.
    pub(super) fn level(&self) -> String {
        // The key, the equals sign, the value.
        let entry = self.entry("priority").unwrap_or_default();
        entry.get(2).map_or("1".to_owned(), ToString::to_string)
    }

    /// Returns the shared resources that it lists.
    pub(super) fn shared(&self) -> Vec<String> {
        let Some(entry) = self.entry("shared") else { return Vec::new() };
        let lists = entry.into_iter().filter_map(|tree| match tree {
            TokenTree::Group(list) => Some(list.stream()),
            _ => None,
        });
        // An attribute is a group, so only the names are left.
        let name = |tree| match tree {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        };
        lists.flatten().filter_map(name).collect()
    }
}

pub(super) fn is_ident(tree: &TokenTree, name: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == name)
}

pub(super) fn is_punct(tree: &TokenTree, char: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == char)
}
