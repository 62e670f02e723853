"""webpage"""
