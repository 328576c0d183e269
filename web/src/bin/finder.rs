//! The program of the Search page.

fn main() {
    trainplan_web::finder();
}
