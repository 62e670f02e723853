"""heads"""
