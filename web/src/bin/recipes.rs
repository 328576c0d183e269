//! The program of the Recipes page.

fn main() {
    trainplan_web::recipes();
}
