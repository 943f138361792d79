#[punctual::app]
struct App;

fn main() {}
